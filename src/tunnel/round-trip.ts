import { randomBytes, randomUUID } from 'node:crypto'
import { type Cancellable, deadline } from '../base/abort.js'
import { describeConnectionError } from '../base/connection-error.js'
import { Secret } from '../base/secret.js'
import type { WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, only } from '../webhook/headers.js'
import { restore } from '../webhook/restore.js'
import { sign } from '../webhook/signature.js'
import type { Message } from './message.js'

export interface RoundTrip {
  /** Whether the message is the one that is under way; anybody else's never is. */
  readonly isOwn: (message: Message, lines: HeaderLines) => Promise<boolean>
  /** Sends a signed message to the channel: `ok` when it has come back byte for byte, else why it has not. */
  run(url: string, options: RoundTripOptions): Promise<string>
}

export interface RoundTripOptions extends Cancellable {
  readonly fetch: typeof fetch
  /** Milliseconds the message may take. */
  readonly limit: number
}

const USER_AGENT = 'webhook-relay'

/** Whether the message says that a relay sent it to itself, which anybody may say. */
export function saysItIsRoundTrip(lines: HeaderLines): boolean {
  return only(lines, 'user-agent') === USER_AGENT
}

interface UnderWay {
  readonly id: string
  readonly key: Secret
  readonly body: Uint8Array
  changed: boolean
  readonly back: () => void
}

/**
 * The message is signed with a key that is made for it and forgotten after it, not with the webhook secret. So nobody can
 * make one that is taken for it, in place of a delivery, and sent again by others it is no delivery either.
 */
export function createRoundTrip(scheme: WebhookScheme): RoundTrip {
  let underWay: UnderWay | undefined
  return {
    async isOwn({ remains }, lines) {
      const sent = underWay
      if (!sent || only(lines, scheme.deliveryHeader) !== sent.id) return false
      const restored = await restore(remains, lines, { secrets: { current: sent.key }, scheme })
      sent.changed = !restored
      if (restored && Buffer.from(sent.body).equals(restored.body)) sent.back()
      return restored !== undefined
    },
    async run(url, { fetch, limit, signal }) {
      let back = (): void => {}
      const came = new Promise<string>((resolve) => (back = () => resolve('ok')))
      const sent = {
        id: randomUUID(),
        key: new Secret(randomBytes(32).toString('hex')),
        body: freshBody(),
        changed: false,
        back,
      }
      underWay = sent
      const until = deadline(limit, signal)
      try {
        const refusal = await post(url, sent, scheme, fetch, until)
        return refusal ?? (await Promise.race([came, aborted(until)])) ?? late(sent, limit)
      } finally {
        underWay = undefined
      }
    },
  }
}

/** As Gitea writes JSON, so that a server that writes it anew is seen, and that its bytes are got back. */
function freshBody(): Uint8Array {
  return Buffer.from(`{
  "zen": "\\u003crelay\\u003e \\u0026 its tunnel: \\u2028😀",
  "nonce": "${randomUUID()}"
}`)
}

/** Undefined when the server has taken it. */
async function post(
  url: string,
  { id, key, body }: UnderWay,
  { eventHeader, deliveryHeader }: WebhookScheme,
  fetch: typeof globalThis.fetch,
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
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await answer.body?.cancel()
    return answer.ok ? undefined : `the server answers ${answer.status} to a delivery`
  } catch (error) {
    return signal.aborted ? undefined : describeConnectionError(error)
  }
}

function late({ changed }: UnderWay, limit: number): string {
  return changed
    ? 'it came back changed in a way that cannot be undone'
    : `nothing came back within ${limit / 1000} s`
}

async function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
