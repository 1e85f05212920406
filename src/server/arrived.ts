import type { Header } from '../http/headers.js'
import type { Receipt } from '../journal/types.js'
import type { WebhookRequest } from '../senders/request.js'
import type { Source } from '../senders/source.js'
import type { RequestOrigin } from '../webhook/intake.js'
import { shakeHands } from './handshake.js'
import type { AppParts, Replying } from './parts.js'
import { MAX_QUESTION, type Questions, responseOf } from './reply.js'

const NONE = new Uint8Array()

/** Parts that answer what arrives at a source's address, whichever way it came. */
export interface ArrivalParts extends Pick<
  AppParts,
  'intake' | 'maxBody' | 'refusals' | 'clock' | 'expected' | 'command'
> {
  readonly instance: Replying | undefined
}

/** A request to the address of a source. */
export interface Arrived {
  readonly method: string
  readonly headers: readonly Header[]
  readonly query: string | undefined
  /** Path behind the source's address, with its slash. */
  readonly path?: string
  /** Address that its sender was given. */
  readonly payloadUrl: string
  /** Reads the body. @throws RelayError `too_large` over `limit` bytes, `cancelled`, `unavailable` */
  readonly body: (limit: number) => Promise<Uint8Array>
  /** Set if it had waited at a hub. */
  readonly waited?: RequestOrigin['waited']
  /** Called once it is stored: the answer may take longer. */
  readonly onStored?: () => void
}

/**
 * Answers a POST to a source's address: a handshake, or a delivery, which is stored first. Undefined for the plain 200.
 * @throws RelayError for a refusal, once it is listed; `storage`
 */
export async function answerDelivery(
  arrived: Arrived,
  source: Source,
  parts: ArrivalParts,
): Promise<Response | undefined> {
  const { method, headers, query, path, payloadUrl, waited, onStored } = arrived
  const { intake, refusals, maxBody, instance } = parts
  const via = waited ? 'tunnel' : 'http'
  let request: WebhookRequest = { headers, body: NONE, query, path, payloadUrl }
  if (!source.sender.proves && isOfPage(headers)) throw refusals.ofPage(request, source, via)
  let receipt: Receipt
  try {
    request = { ...request, body: await arrived.body(maxBody) }
    const handshaken = await shakeHands(method, request, source, parts)
    if (handshaken) return handshaken
    receipt = await intake.receive(request, { source, ...(waited && { waited }) })
  } catch (error) {
    throw refusals.http(error, request, source, via)
  }
  onStored?.()
  const reply = instance?.replies(source.name) ? await instance.reply(source.name, receipt) : undefined
  const { accepted } = source.sender
  const passedOn = reply && responseOf(reply)
  if (passedOn || !accepted) return passedOn
  return new Response(accepted.text, { headers: { 'Content-Type': accepted.type } })
}

/**
 * True if a web page may have sent a request: any can make its reader's browser do that, which then adds an Origin
 * header (Fetch, section 3.1).
 */
function isOfPage(headers: readonly Header[]): boolean {
  return headers.some(([name]) => name.toLowerCase() === 'origin')
}

/**
 * Answers a request of another method than POST: a handshake without a body, or a question for the program that replies.
 * Undefined if it is neither.
 * @throws RelayError `forbidden`, `bad_request` for a handshake; `unavailable` without an answer in time
 */
export async function answerQuestion(
  { method, headers, query, path, payloadUrl, body }: Arrived,
  source: Source,
  parts: ArrivalParts,
  questions: Questions,
): Promise<Response | undefined> {
  const { instance } = parts
  const request = { headers, body: NONE, query, path, payloadUrl }
  const handshaken = await shakeHands(method, request, source, parts)
  if (handshaken) return handshaken
  if (!instance?.replies(source.name)) return undefined
  return questions.ask(instance, source.name, { method, headers, query, body: await body(MAX_QUESTION) })
}
