import type { Dispatcher } from 'undici'
import { errorCode } from '../base/errno.js'

/** Codes of Node and undici for a connection that the other side closed. */
const CLOSED = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/**
 * A reused connection was closed before the first byte of the response. Most likely the target closed the idle connection just
 * when the request was sent (RFC 9112 section 9.3.1), which does not mean that the target is down.
 */
export class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError'
}

/** Wraps a client of one connection so that its requests fail with a {@link StaleConnectionError} if that is the reason. */
export function noticingStale(client: Dispatcher): Dispatcher {
  /** Whether the connection has carried a response. */
  let isUsed = false
  client.on('disconnect', () => {
    isUsed = false
  })
  return client.compose((dispatch) => (options, handler) => {
    let hasBegun = false
    return dispatch(options, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onResponseStarted() {
        hasBegun = true
      },
      onResponseStart: (controller, status, headers, text) =>
        handler.onResponseStart?.(controller, status, headers, text),
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd(controller, trailers) {
        isUsed = true
        handler.onResponseEnd?.(controller, trailers)
      },
      onResponseError(controller, error) {
        const isStale = isUsed && !hasBegun && CLOSED.has(errorCode(error) ?? '')
        handler.onResponseError?.(controller, isStale ? new StaleConnectionError(error.message) : error)
      },
    })
  })
}
