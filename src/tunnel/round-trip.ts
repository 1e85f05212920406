import { randomBytes, randomUUID } from 'node:crypto'
import { aborted, deadline } from '../base/abort.js'
import { Secret } from '../base/secret.js'
import { type HeaderLines, only } from '../http/headers.js'
import { describeConnectionError, parseRetryAfter } from '../net/errors.js'
import type { SendOnce } from '../net/client.js'
import { HUB_SIGNATURE, hubSignature } from '../codehost/hub-signature.js'
import type { WebhookScheme } from '../codehost/host.js'
import { type MessageBody, restore } from '../webhook/restore.js'

export interface RoundTripParts {
  /** The channel's address. */
  readonly url: string
  readonly scheme: WebhookScheme
  readonly sendOnce: SendOnce
  /** Milliseconds in which the message must come back. */
  readonly limit: number
}

export interface RoundTripResult {
  /** `ok`, or why the message did not come back as it was. */
  readonly outcome: string
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter?: number | undefined
}

interface Sent {
  readonly id: string
  readonly key: Secret
  readonly body: Uint8Array
  readonly returned: AbortController
  isChanged: boolean
}

const USER_AGENT = 'webhook-relay'
/** Messages that may still come back after their time. */
const MAX_SENT = 16

/** Whether a message claims that a relay sent it to itself. Anybody can claim that. */
export function claimsRoundTrip(lines: HeaderLines): boolean {
  return only(lines, 'user-agent') === USER_AGENT
}

/**
 * Checks that the server passes messages on and that relay can restore their bytes. Each message is signed with a key of its own
 * instead of the webhook secret: no delivery can be mistaken for it, and a copy that others send is no delivery.
 */
export class RoundTrips {
  readonly #parts: RoundTripParts
  readonly #sent = new Map<string, Sent>()

  constructor(parts: RoundTripParts) {
    this.#parts = parts
  }

  /** Whether relay sent the message to itself. A message that somebody else sent never is, whatever its id. */
  async isOwn(message: MessageBody, lines: HeaderLines): Promise<boolean> {
    const { scheme } = this.#parts
    const own = this.#sent.get(only(lines, scheme.idHeaders[0]) ?? '')
    if (!own) return false
    const options = { scheme, secrets: { current: own.key }, maxBody: own.body.length }
    const restored = await restore(message, lines, options).catch(() => undefined)
    own.isChanged = !restored
    if (restored && this.#sent.delete(own.id)) own.returned.abort()
    return restored !== undefined
  }

  /** Sends a message to the channel, and waits until it is back. */
  async make(signal: AbortSignal): Promise<RoundTripResult> {
    const own: Sent = {
      id: randomUUID(),
      key: new Secret(randomBytes(32).toString('hex')),
      body: createBody(),
      returned: new AbortController(),
      isChanged: false,
    }
    this.#sent.set(own.id, own)
    if (this.#sent.size > MAX_SENT)
      for (const oldest of this.#sent.keys()) if (this.#sent.delete(oldest)) break
    const { limit } = this.#parts
    const until = deadline(limit, signal)
    const refusal = await this.#post(own, until)
    if (refusal) return refusal
    await Promise.race([aborted(own.returned.signal), aborted(until)])
    if (own.returned.signal.aborted) return { outcome: 'ok' }
    if (own.isChanged) return { outcome: 'it came back changed, and its bytes could not be restored' }
    return { outcome: `nothing came back within ${limit / 1000} s` }
  }

  /** Why the server did not accept the message; undefined if it did. */
  async #post({ id, key, body }: Sent, signal: AbortSignal): Promise<RoundTripResult | undefined> {
    const { url, scheme, sendOnce } = this.#parts
    const headers = {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      [scheme.eventHeader]: 'ping',
      [scheme.idHeaders[0]]: id,
      [HUB_SIGNATURE]: hubSignature(key, body),
    }
    try {
      const { status, header, discard } = await sendOnce(url, { method: 'POST', headers, body, signal })
      discard()
      if (status >= 200 && status <= 299) return undefined
      const outcome = `the server answers ${status} to a delivery`
      return { outcome, retryAfter: parseRetryAfter(header, Date.now()) }
    } catch (error) {
      return signal.aborted ? undefined : { outcome: describeConnectionError(error) }
    }
  }
}

/** JSON as Gitea writes it, so that a server that rewrites it is noticed, and restoring the bytes is tested. */
function createBody(): Uint8Array {
  return Buffer.from(`{
  "zen": "\\u003crelay\\u003e \\u0026 its tunnel: \\u2028😀",
  "nonce": "${randomUUID()}"
}`)
}
