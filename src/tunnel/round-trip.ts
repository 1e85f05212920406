import { randomBytes, randomUUID } from 'node:crypto'
import { aborted, deadline } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { senderOf } from '../senders/senders.js'
import { type HeaderLines, singleValue } from '../http/headers.js'
import type { SendOnce } from '../net/client.js'
import type { MessageBody } from '../senders/restore.js'
import { tunnelFailure, redirectNote, tunnelRefusal } from './channel.js'

const USER_AGENT = 'webhook-relay'
/** Sender whose signature relay's messages to itself have, on the channel of any source. */
const ROUND_TRIP = senderOf('github')
/** The form of that signature. */
export const ROUND_TRIP_FORMS = ROUND_TRIP.signaturesOf(new Secret(''))
const ID = 'x-github-delivery'
/** Largest message to itself, in bytes. */
const MAX_BODY = 1024
const CHANGED = 'it came back changed, and its bytes could not be restored'

/** True if a message claims that a relay sent it to itself. Anybody can claim that. */
export function claimsRoundTrip(lines: HeaderLines): boolean {
  return singleValue(lines, 'user-agent') === USER_AGENT
}

/**
 * Tests a tunnel with messages to itself, signed with a separate key, so that neither such a message nor a copy of it
 * can be mistaken for a delivery.
 */
export class RoundTrips {
  readonly #key = new Secret(randomBytes(32).toString('hex'))
  /** The last message. `returned` aborts with its problem, or with ''. */
  #sent = { id: '', returned: new AbortController() }

  /** True if relay sent the message to itself. A message that somebody else sent never is, whatever its id. */
  async isOwn(message: MessageBody, lines: HeaderLines): Promise<boolean> {
    if (!claimsRoundTrip(lines)) return false
    const options = { secrets: { current: this.#key }, maxBody: MAX_BODY }
    // The encoding is known. Anybody may send many messages that claim to be one.
    const [likely, body] = [{ last: 'indented-go' } as const, { ...message, length: NaN }]
    const found = await ROUND_TRIP.restoreLikely(body, lines, options, likely).catch(() => undefined)
    const isOwn = found?.restored !== undefined
    const { id, returned } = this.#sent
    if (singleValue(lines, ID) === id) returned.abort(isOwn ? '' : CHANGED)
    return isOwn
  }

  /**
   * Sends a message and waits until it is back, at most `limit` milliseconds.
   * @throws RelayError `provider_failed` that says why it did not return unchanged
   */
  async make(
    url: string,
    { sendOnce, limit, signal }: { sendOnce: SendOnce; limit: number; signal: AbortSignal },
  ): Promise<void> {
    const { id, returned } = (this.#sent = { id: randomUUID(), returned: new AbortController() })
    // Written as Gitea writes JSON, so that a server that rewrites it is noticed, and restoring the bytes is tested.
    const text = String.raw`\u003crelay\u003e \u0026 its tunnel: \u2028😀`
    const body = Buffer.from(`{\n  "zen": "${text}",\n  "nonce": "${randomUUID()}"\n}`)
    const kind = ROUND_TRIP.kindOf(body, 'ping')
    const signed = ROUND_TRIP.sign({ headers: [], body }, { current: this.#key }, 0, kind).headers
    const headers = {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'x-github-event': 'ping',
      [ID]: id,
      ...Object.fromEntries(signed.map(([name, value]) => [name.toLowerCase(), value])),
    }
    const until = deadline(limit, signal)
    try {
      const response = await sendOnce(url, { method: 'POST', headers, body, signal: until })
      response.discard()
      const { status } = response
      if (status < 200 || status > 299)
        throw tunnelRefusal(
          `the server answers ${status} to a delivery${redirectNote(response, url)}`,
          response,
        )
    } catch (error) {
      if (!until.aborted) throw tunnelFailure(error)
    }
    await Promise.race([aborted(returned.signal), aborted(until)])
    const late = `nothing came back within ${limit / 1000} s`
    const problem = String(returned.signal.aborted ? returned.signal.reason : late)
    if (problem !== '') throw new RelayError('provider_failed', problem)
  }
}
