import { randomBytes, randomUUID } from 'node:crypto'
import { aborted, type Cancellable, deadline } from '../base/abort.js'
import { Secret } from '../base/secret.js'
import { describeConnectionError } from '../net/connection-error.js'
import { parseRetryAfter } from '../net/retry-after.js'
import type { SendOnce } from '../net/send-once.js'
import type { WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, only } from '../webhook/headers.js'
import { restore } from '../webhook/restore/restore.js'
import { sign } from '../webhook/signature.js'
import { MAX_INLINE, type RawEvent } from './events.js'
import type { Message } from './message.js'

export interface RoundTrip {
  /** Whether relay sent the message to itself. A message that somebody else sent never is. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
  /** Whether the event has the id of the message in flight. Anybody who has seen that message can send such an event. */
  readonly isInFlight: (event: RawEvent) => boolean
  /** Sends a signed message to the channel. Resolves to `ok` once it came back byte for byte, otherwise to why not. */
  run(url: string, options: RoundTripOptions): Promise<RoundTripResult>
}

export interface RoundTripResult {
  readonly outcome: string
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter?: number | undefined
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

/** Messages that may still come back after their time. */
const MAX_SENT = 16

interface Sent {
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
  const sent = new Map<string, Sent>()
  let inFlight: Sent | undefined
  return {
    isInFlight: ({ blocks: [block], length }) =>
      inFlight !== undefined && block !== undefined && length <= MAX_INLINE
        ? Buffer.from(block.buffer).includes(inFlight.id)
        : false,
    async isOwn({ body }, lines) {
      const own = sent.get(only(lines, scheme.deliveryHeader) ?? '')
      if (!own) return false
      const restored = await restore(body, lines, { secrets: { current: own.key }, scheme })
      own.changed = !restored
      if (restored && Buffer.from(own.body).equals(restored.body)) {
        sent.delete(own.id)
        own.onReturned()
      }
      return restored !== undefined
    },
    async run(url, { sendOnce, limit, signal }) {
      let onReturned = (): void => {}
      const returned = new Promise<RoundTripResult>(
        (resolve) => (onReturned = () => resolve({ outcome: 'ok' })),
      )
      const own: Sent = {
        id: randomUUID(),
        key: new Secret(randomBytes(32).toString('hex')),
        body: createBody(),
        changed: false,
        onReturned,
      }
      inFlight = own
      sent.set(own.id, own)
      if (sent.size > MAX_SENT) for (const oldest of sent.keys()) if (sent.delete(oldest)) break
      const until = deadline(limit, signal)
      try {
        const refusal = await post(url, own, scheme, sendOnce, until)
        return refusal ?? ((await Promise.race([returned, aborted(until)])) || timeout(own, limit))
      } finally {
        if (inFlight === own) inFlight = undefined
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
  { id, key, body }: Sent,
  { eventHeader, deliveryHeader }: WebhookScheme,
  sendOnce: SendOnce,
  signal: AbortSignal,
): Promise<RoundTripResult | undefined> {
  const headers = {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    [eventHeader]: 'ping',
    [deliveryHeader]: id,
    'x-hub-signature-256': sign(key, body),
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

function timeout({ changed }: Sent, limit: number): RoundTripResult {
  return {
    outcome: changed
      ? 'it came back changed, and its bytes could not be restored'
      : `nothing came back within ${limit / 1000} s`,
  }
}

export interface RepeatOptions {
  readonly run: () => Promise<RoundTripResult>
  readonly wait: (failures: number, retryAfter: number | undefined) => Promise<void>
  /** Called with each outcome that differs from the one before. */
  readonly onChange: (outcome: string) => void
  readonly signal: AbortSignal
}

/** Makes round trips until one succeeds. */
export async function repeatRoundTrip({ run, wait, onChange, signal }: RepeatOptions): Promise<void> {
  let before: string | undefined
  for (let failures = 1; !signal.aborted; failures++) {
    const { outcome, retryAfter } = await run()
    if (signal.aborted) return
    if (outcome !== before) onChange(outcome)
    if (outcome === 'ok') return
    before = outcome
    await wait(failures, retryAfter)
  }
}
