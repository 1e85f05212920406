/**
 * Messages for people. Nothing below `cli/` prints: it writes to a log passed to it. A message is one line and never
 * contains a token, a secret or a body.
 */
export interface Log {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  /** `cause` is for relay's developers. Its stack is shown only with RELAY_DEBUG. */
  error(message: string, cause?: unknown): void
}

const nothing = (): void => {}

/** A log that drops every message. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Two lines of a terminal: enough to recognize a path, an event or an id. */
const MAX_EXCERPT = 200

/** Shortens text from outside to 200 characters for a log line. The caller escapes its control characters. */
export function excerpt(text: string): string {
  // The cut may fall between two surrogates.
  return text.length > MAX_EXCERPT ? `${text.slice(0, MAX_EXCERPT - 1).replace(/\p{Cs}$/u, '')}…` : text
}

/** One second: a person reads no faster, and one line a second fills no disk. */
const PERIOD_MS = 1_000
/** relay has about twenty kinds of line that an outsider can trigger. Further kinds share one count, which bounds memory. */
const MAX_KINDS = 64
const OTHER_KINDS = 'other lines'

/** Runs `write`, or counts the line if one of the same kind and level was written less than a second ago. */
export type LogThrottle = (kind: string, write: () => void, level?: keyof Log) => void

/**
 * Rate limiter for log lines that an outsider can trigger. `kind` is what equal lines have in common. The first line of
 * a kind is written at once. Those that follow are counted, and one line a second states the number, until a second
 * passes without any. Its timers do not keep the process alive.
 */
export function createLogThrottle(log: Log): LogThrottle {
  const counts = new Map<string, number>()
  const keyOf = (kind: string, level: keyof Log): string => `${level} ${kind}`
  const startCount = (key: string, kind: string, level: keyof Log): void => {
    counts.set(key, 0)
    const timer = setInterval(() => {
      const count = counts.get(key) ?? 0
      if (count > 0) {
        counts.set(key, 0)
        log[level](`${kind} … and ${count.toLocaleString('en-US')} more like it in the last second`)
      } else {
        clearInterval(timer)
        counts.delete(key)
      }
    }, PERIOD_MS).unref()
  }
  return (given, write, level = 'warn') => {
    const name = excerpt(given)
    const kind = counts.has(keyOf(name, level)) || counts.size < MAX_KINDS ? name : OTHER_KINDS
    const key = keyOf(kind, level)
    const count = counts.get(key)
    if (count === undefined) {
      startCount(key, kind, level)
      write()
    } else counts.set(key, count + 1)
  }
}
