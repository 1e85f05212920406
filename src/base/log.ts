/**
 * Messages for people. Nothing below `cli/` prints; it writes to a log that it is given. A message is one line and never
 * contains a token, a secret or a body.
 */
export interface Log {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  /** `cause` is for relay's developers: its stack is shown only with RELAY_DEBUG. */
  error(message: string, cause?: unknown): void
}

const nothing = (): void => {}

/** A log that drops every message. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Two lines of a terminal: enough to recognize a path, an event or an id. */
const MAX_EXCERPT = 200

/** Text from outside, cut for a log line to 200 characters. The caller escapes its control characters. */
export function excerpt(text: string): string {
  // The cut may fall between the two halves of a character.
  return text.length > MAX_EXCERPT ? `${text.slice(0, MAX_EXCERPT - 1).replace(/\p{Cs}$/u, '')}…` : text
}
