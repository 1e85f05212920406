import type { HttpBindings } from '@hono/node-server'
import { linger } from './linger.js'

/** 32 MiB: above the largest body any provider sends (25 MiB), so an honest client always gets to read its answer. */
const DISCARD_BYTES = 33_554_432
/** 5 s: half of what a provider waits for an answer. */
const DISCARD_MS = 5_000

/**
 * Reads what is left of a request's body and throws it away. An answer sent while the client still writes is lost, or
 * resets the next request on the connection, so whoever refuses a request calls this first. Past 32 MiB or 5 s it
 * gives up: the answer that follows is the connection's last. Never rejects, also when the client goes away, and does
 * nothing when called again.
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
      // Node calls it when the answer is written; its own would cut a client that still writes off from the answer.
      incoming.socket.destroySoon = () => linger(incoming.resume().socket)
      finish()
    }
    const count = (chunk: Uint8Array): void => {
      bytes += chunk.byteLength
      if (bytes > DISCARD_BYTES) giveUp()
    }
    const timer = setTimeout(giveUp, DISCARD_MS)
    incoming.on('data', count).on('end', finish).on('close', finish)
  })
}

/** No body at all, or a client still waiting for `100 Continue`, which is sent when reading starts (see listen.ts). */
function hasSentNoBody(incoming: HttpBindings['incoming']): boolean {
  const { expect, 'content-length': length, 'transfer-encoding': encoding } = incoming.headers
  if (length === undefined && encoding === undefined) return true
  return expect !== undefined && incoming.readableFlowing === null
}
