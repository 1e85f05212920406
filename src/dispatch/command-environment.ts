import type { Summary } from '../journal/delivery.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Relay's own secrets, where files with them lie, and addresses that may hold passwords. */
const SECRETS = /^RELAY_(?:(?:CLIENT|WEBHOOK)_SECRET|FORWARD$)/

/** Bytes of UTF-8 that a value taken from a delivery may have. */
const MAX_LENGTH = 1024

/** What a command finds in its environment: relay's, without its secrets, and what the delivery is; empty where it has none. */
export function commandEnvironment(
  env: Environment,
  { event, action, repo, deliveryId }: Pick<Summary, 'event' | 'action' | 'repo' | 'deliveryId'>,
): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !SECRETS.test(name))),
    RELAY_EVENT: clean(event),
    RELAY_ACTION: clean(action ?? ''),
    RELAY_REPO: clean(repo ?? ''),
    RELAY_DELIVERY: clean(deliveryId),
  }
}

/** Without control characters, and cut where a character ends. */
function clean(text: string): string {
  const room = new Uint8Array(MAX_LENGTH)
  const { written } = new TextEncoder().encodeInto(text.replace(/\p{Cc}/gu, ''), room)
  return Buffer.from(room.subarray(0, written)).toString()
}
