import { randomBytes, randomUUID } from 'node:crypto'
import { aborted, type Cancellable, deadline } from '../base/abort.js'
import { Secret } from '../base/secret.js'
import { describeConnectionError } from '../net/connection-error.js'
import type { SendOnce } from '../net/send-once.js'
import type { WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, only } from '../webhook/headers.js'
import { restore } from '../webhook/restore/restore.js'
import { sign } from '../webhook/signature.js'
import type { Message } from './message.js'

export interface RoundTrip {
  /** Whether the message is the one in flight. A message that somebody else sent never is. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
  /** Sends a signed message to the channel. Returns `ok` if it came back byte for byte, otherwise why not. */
  run(url: string, options: RoundTripOptions): Promise<string>
}

export interface RoundTripOptions extends Cancellable {
  readonly sendOnce: SendOnce
  /** Milliseconds in which the message must come back. */
  readonly limit: number
}

const USER_AGENT = 'webhook-relay'

/** Whether the message claims that a relay sent it to itself. Anybody can claim that. */
export function claimsRoundTrip(lines: HeaderLines): boolean {
  return only(lines, 'user-agent') === USER_AGENT
}

interface InFlight {
  readonly id: string
  readonly key: Secret
  readonly body: Uint8Array
  changed: boolean
  readonly onReturned: () => void
}

/**
 * Checks that the server forwards messages and that relay can restore their bytes. The message is signed with a one-time
 * key instead of the webhook secret. So no delivery can be mistaken for it, and a copy that others send is not a delivery.
 */
export function createRoundTrip(scheme: WebhookScheme): RoundTrip {
  let inFlight: InFlight | undefined
  return {
    async isOwn({ body }, lines) {
      const sent = inFlight
      if (!sent || only(lines, scheme.deliveryHeader) !== sent.id) return false
      const restored = await restore(body, lines, { secrets: { current: sent.key }, scheme })
      sent.changed = !restored
      if (restored && Buffer.from(sent.body).equals(restored.body)) sent.onReturned()
      return restored !== undefined
    },
    async run(url, { sendOnce, limit, signal }) {
      let onReturned = (): void => {}
      const returned = new Promise<string>((resolve) => (onReturned = () => resolve('ok')))
      const sent = {
        id: randomUUID(),
        key: new Secret(randomBytes(32).toString('hex')),
        body: createBody(),
        changed: false,
        onReturned,
      }
      inFlight = sent
      const until = deadline(limit, signal)
      try {
        const refusal = await post(url, sent, scheme, sendOnce, until)
        return refusal ?? ((await Promise.race([returned, aborted(until)])) || timeoutReason(sent, limit))
      } finally {
        inFlight = undefined
      }
    },
  }
}

/** JSON as Gitea writes it, so that a server that rewrites it is noticed, and restoring the bytes is tested. */
function createBody(): Uint8Array {
  return Buffer.from(`{
  "zen": "\\u003crelay\\u003e \\u0026 its tunnel: \\u2028😀",
  "nonce": "${randomUUID()}"
}`)
}

/** Why the server did not accept the message; undefined if it did. */
async function post(
  url: string,
  { id, key, body }: InFlight,
  { eventHeader, deliveryHeader }: WebhookScheme,
  sendOnce: SendOnce,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    [eventHeader]: 'ping',
    [deliveryHeader]: id,
    'x-hub-signature-256': sign(key, body),
  }
  try {
    const { status, discard } = await sendOnce(url, { method: 'POST', headers, body, signal })
    discard()
    return status >= 200 && status <= 299 ? undefined : `the server answers ${status} to a delivery`
  } catch (error) {
    return signal.aborted ? undefined : describeConnectionError(error)
  }
}

function timeoutReason({ changed }: InFlight, limit: number): string {
  return changed
    ? 'it came back changed, and its bytes could not be restored'
    : `nothing came back within ${limit / 1000} s`
}
