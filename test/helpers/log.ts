import type { Log } from '../../src/base/log.js'

/** A log that records warnings and errors. */
export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const log: Log = {
    debug: () => {},
    info: () => {},
    warn: (message) => lines.push(`warn ${message}`),
    error: (message, cause) => lines.push(`error ${message}: ${String(cause)}`),
  }
  return { log, lines }
}
