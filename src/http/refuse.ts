import { randomUUID } from 'node:crypto'
import { STATUS_CODES, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { RelayError } from '../base/errors.js'
import { linger } from './linger.js'
import { errorBody } from './respond.js'

/**
 * Answers a request that Node's HTTP parser refused, for which there is no response object, and closes the connection.
 * `latest` is the response last started on it. The client must not take the refusal for a response that is still pending, so
 * then the connection is closed after that response, without a refusal.
 */
export function refuse(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  latest: ServerResponse | undefined,
): void {
  if (error.code === 'ECONNRESET') return void socket.destroy()
  if (!socket.writable) return
  if (!latest || latest.writableFinished || isAbout(latest)) {
    linger(socket, refusal(error.code))
  } else if (latest.req.complete) {
    latest.shouldKeepAlive = false
    latest.once('close', () => socket.destroy())
  } else {
    // The body broke off after its response had started, or while an earlier one was pending: the request can never end.
    socket.destroy()
  }
}

/** The refused bytes belong to the body of the request whose response is next, and none of that response is sent. */
function isAbout({ req, socket, headersSent }: ServerResponse): boolean {
  return !req.complete && socket !== null && !headersSent
}

function refusal(code: string | undefined): string {
  const error = parserError(code)
  const body = JSON.stringify(errorBody(error))
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${randomUUID()}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** Node's own codes: nodejs.org/api/http.html, event 'clientError'. */
function parserError(code: string | undefined): RelayError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new RelayError('header_too_large', 'Request header fields too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new RelayError('request_timeout', 'Request timeout')
  return new RelayError('bad_request', 'Bad request')
}
