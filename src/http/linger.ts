import type { Duplex } from 'node:stream'

/** 1 s: time for a client that still writes to find the answer. */
const LINGER_MS = 1_000

/**
 * Closes a connection in the way that loses nothing already written: says at once that no more will come, and cuts it a
 * little later (RFC 9112 section 9.6). A connection cut while its client writes is reset, and takes the answer along.
 */
export function linger(socket: Duplex, last?: string): void {
  socket.end(last)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
