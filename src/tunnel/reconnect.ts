/** How a connection, or the attempt to open one, ended. */
export interface ConnectionEnd {
  readonly reason: string
  /** Whether the connection was open. */
  readonly opened: boolean
  /** Whether it lasted long enough to count as stable. */
  readonly steady: boolean
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter?: number | undefined
}

export interface Retry {
  /** Number of the attempt; 1 is the first after a stable connection. */
  readonly attempt: number
  /** Milliseconds until then. */
  readonly ms: number
}

/** 15 minutes: a server that asks for a longer wait may have been repaired by then. */
const MAX_RETRY_AFTER_MS = 900_000

/**
 * Decides when to connect again. After a connection that was open: at once, and then after `delay` with 1, 2, 3 …, unless a
 * connection was stable meanwhile. A server that accepts and closes is so not flooded. Never before a `Retry-After`.
 */
export function createReconnect(delay: (failures: number) => number): (end: ConnectionEnd) => Retry {
  let attempt = 0
  let startedAtOnce = false
  return ({ opened, steady, retryAfter = 0 }) => {
    if (steady) attempt = 0
    attempt++
    if (attempt === 1) startedAtOnce = opened
    const failures = startedAtOnce ? attempt - 1 : attempt
    const own = failures === 0 ? 0 : delay(failures)
    return { attempt, ms: Math.max(own, Math.min(retryAfter, MAX_RETRY_AFTER_MS)) }
  }
}
