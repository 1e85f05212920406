import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from 'node:http'

/** The secret of every webhook of the tests, from GitHub's documentation of signatures. */
export const SECRET = "It's a Secret to Everybody"

/** The variable with the secret of a source. */
export function secretVariable(source: string): string {
  return `RELAY_SOURCE_${source.toUpperCase().replaceAll('-', '_')}_SECRET`
}

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

/** An event as Stripe sends it now. */
export function stripeDelivery({
  secret,
  id,
}: {
  readonly secret: string
  readonly id: string
}): WebhookRequest {
  const body = JSON.stringify({ id, object: 'event', type: 'invoice.paid' }, null, 2)
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return {
    headers: [
      ['Content-Type', 'application/json'],
      ['Stripe-Signature', `t=${time},v1=${signature}`],
    ],
    body: Buffer.from(body),
  }
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
export function post(
  url: string,
  request: WebhookRequest,
  agent?: Agent | false,
  signal?: AbortSignal,
): Promise<Answer> {
  return answerTo(requestOf(url, request, { agent, signal }), request)
}

/** Begins a delivery and waits until the service asks for its body, which is still to be sent, by {@link finish}. */
export async function begin(url: string, request: WebhookRequest): Promise<ClientRequest> {
  const headers: Header[] = [...request.headers, ['Expect', '100-continue']]
  const begun = requestOf(url, { ...request, headers })
  begun.flushHeaders()
  await once(begun, 'continue')
  return begun
}

/** Sends the body of a delivery that was begun; the status of the answer. */
export async function finish(begun: ClientRequest, request: WebhookRequest): Promise<number> {
  return (await answerTo(begun, request)).status
}

function requestOf(
  url: string,
  { headers, body }: WebhookRequest,
  options: RequestOptions = {},
): ClientRequest {
  const lines = [['Host', new URL(url).host], ...headers, ['Content-Length', String(body.byteLength)]].flat()
  return httpRequest(url, { ...options, method: 'POST', headers: lines })
}

async function answerTo(request: ClientRequest, { body }: WebhookRequest): Promise<Answer> {
  const answered: Promise<IncomingMessage[]> = once(request, 'response')
  request.end(body)
  const [response] = await answered
  const type = response?.headers['content-type']
  return { status: response?.statusCode ?? 0, type, body: response ? await text(response) : '' }
}
