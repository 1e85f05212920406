import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'

/** The secret of every webhook of the tests, from GitHub's documentation of signatures. */
export const SECRET = "It's a Secret to Everybody"

/** A header line: its name as it is written, and its value. */
export type Header = readonly [name: string, value: string]

/** A request to the webhook endpoint. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Buffer
}

export interface DeliveryOptions {
  readonly body?: string | Uint8Array
  /** What was signed, where it is not the body. */
  readonly signed?: string
  readonly secret?: string
  readonly event?: string
  readonly id?: string
  readonly hook?: string
  readonly type?: string
  /** Replace or, given `undefined`, leave out headers; several values make several lines. */
  readonly set?: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** The value of `X-Hub-Signature-256` for a body. */
export function sign(secret: string, body: string | Uint8Array): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}

/** A delivery as GitHub sends it, signed with {@link SECRET}. */
export function githubDelivery(options: DeliveryOptions = {}): WebhookRequest {
  return delivery(options, {
    'X-GitHub-Hook-ID': options.hook ?? '42',
    'X-GitHub-Event': options.event ?? 'push',
    'X-GitHub-Delivery': options.id ?? randomUUID(),
  })
}

/** A delivery as Gitea sends it: GitHub's headers too, with Gitea's event names. */
export function giteaDelivery(options: DeliveryOptions = {}): WebhookRequest {
  const id = options.id ?? randomUUID()
  return delivery(options, {
    'X-GitHub-Delivery': id,
    'X-GitHub-Event': 'push',
    'X-Gitea-Delivery': id,
    'X-Gitea-Event': options.event ?? 'push',
  })
}

function delivery(options: DeliveryOptions, own: Record<string, string>): WebhookRequest {
  const body = Buffer.from(options.body ?? '{"zen":"Design for failure."}')
  const headers = {
    'Content-Type': options.type ?? 'application/json',
    ...own,
    'X-Hub-Signature-256': sign(options.secret ?? SECRET, options.signed ?? body),
    ...options.set,
  }
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values ?? []].flat().map((value): Header => [name, value]),
  )
  return { headers: lines, body }
}

/** What a request was answered. */
export interface Answer {
  readonly status: number
  /** The Content-Type. */
  readonly type: string | undefined
  readonly body: string
}

/** Sends a request over HTTP just as it is, repeated header lines included. */
export async function post(url: string, { headers, body }: WebhookRequest, agent?: Agent): Promise<Answer> {
  const lines = [['Host', new URL(url).host], ...headers, ['Content-Length', String(body.byteLength)]].flat()
  const request = httpRequest(url, { method: 'POST', headers: lines, ...(agent && { agent }) })
  const answered: Promise<IncomingMessage[]> = once(request, 'response')
  request.end(body)
  const [response] = await answered
  const chunks: Buffer[] = []
  if (response) for await (const chunk of response) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  return { status: response?.statusCode ?? 0, type: response?.headers['content-type'], body: text }
}

/** Begins a delivery and waits until the service asks for its body, which is still to be sent, by {@link finish}. */
export async function begin(url: string, { headers, body }: WebhookRequest): Promise<ClientRequest> {
  const length = ['Content-Length', String(body.byteLength)]
  const lines = [['Host', new URL(url).host], ...headers, length, ['Expect', '100-continue']].flat()
  const request = httpRequest(url, { method: 'POST', headers: lines })
  request.flushHeaders()
  await once(request, 'continue')
  return request
}

/** Sends the body of a delivery that was begun; the status of the answer. */
export async function finish(request: ClientRequest, { body }: WebhookRequest): Promise<number> {
  request.end(body)
  const [response]: IncomingMessage[] = await once(request, 'response')
  response?.resume()
  return response?.statusCode ?? 0
}
