import type { Summary } from '../journal/types.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Relay's own secrets, the paths of files with them, and addresses that may contain passwords. */
const SECRETS = /^RELAY_(?:(?:CLIENT|WEBHOOK)_SECRET|TOKEN_KEY|STORE|FORWARD$)/

/** Length limit of a value from a delivery, in bytes of UTF-8. */
const MAX_LENGTH = 1024

/** The environment of a command: relay's without its secrets, and the delivery's values, empty if it has none. */
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

/** Without control characters, cut at the end of a character. */
function clean(text: string): string {
  const room = new Uint8Array(MAX_LENGTH)
  const { written } = new TextEncoder().encodeInto(text.replace(/\p{Cc}/gu, ''), room)
  return Buffer.from(room.subarray(0, written)).toString()
}
