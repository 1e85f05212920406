import type { Duplex } from 'node:stream'

/** 1 s: time for a client that still writes to read the answer. */
const LINGER_MS = 1_000

/**
 * Closes a connection without losing bytes already written: ends this side now and destroys the socket a second later
 * (RFC 9112 section 9.6). Destroying it while the client writes would reset the connection and lose the answer.
 */
export function linger(socket: Duplex, last?: string): void {
  socket.end(last)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
