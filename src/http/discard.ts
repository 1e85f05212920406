import type { HttpBindings } from '@hono/node-server'
import { linger } from './linger.js'

/** 32 MiB: above the largest body any provider sends (25 MiB), so that an honest client always reads its answer. */
const MAX_DISCARD_BYTES = 33_554_432
/** 5 s: half of the time that a provider waits for an answer. */
const DISCARD_TIMEOUT_MS = 5_000

/**
 * Reads the rest of a request's body and discards it. Call it before refusing a request: an answer sent while the client
 * still writes is lost, or resets the next request on the connection. After 32 MiB or 5 s it gives up, and the next
 * answer is the last on its connection. Never rejects, even when the client disconnects. Calling it again does nothing.
 */
export function discardBody({ incoming, outgoing }: HttpBindings): Promise<void> {
  const gaveUp = incoming.isPaused()
  const isOver = incoming.readableEnded || incoming.destroyed
  if (gaveUp || isOver || hasSentNoBody(incoming)) return Promise.resolve()
  return new Promise((resolve) => {
    let bytes = 0
    const finish = (): void => {
      clearTimeout(timer)
      incoming.off('data', count).off('end', finish).off('close', finish)
      resolve()
    }
    const giveUp = (): void => {
      incoming.pause()
      outgoing.shouldKeepAlive = false
      // Node calls this once the answer is written. Its own version would reset the connection of a client that still writes.
      incoming.socket.destroySoon = () => linger(incoming.resume().socket)
      finish()
    }
    const count = (chunk: Uint8Array): void => {
      bytes += chunk.byteLength
      if (bytes > MAX_DISCARD_BYTES) giveUp()
    }
    const timer = setTimeout(giveUp, DISCARD_TIMEOUT_MS)
    incoming.on('data', count).on('end', finish).on('close', finish)
  })
}

/** No body, or a client still waiting for `100 Continue`, which is sent when reading starts (see edge.ts). */
function hasSentNoBody(incoming: HttpBindings['incoming']): boolean {
  const { expect, 'content-length': length, 'transfer-encoding': encoding } = incoming.headers
  if (length === undefined && encoding === undefined) return true
  return expect !== undefined && incoming.readableFlowing === null
}
