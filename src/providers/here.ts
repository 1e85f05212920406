import { request } from 'node:http'
import { onAbort } from '../base/abort.js'
import type { Incoming, SendOnce } from './fetch.js'

/**
 * Sends one request to this machine, where no proxy is asked, by http and over a connection of its own. undici, which knows
 * TLS and proxies, takes twice the time for that.
 */
export const callHere: SendOnce = (address, { method, headers, body, signal }) =>
  new Promise<Incoming>((resolve, reject) => {
    // Node sends a length by itself for those methods only that mostly have a body.
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const options = { method, headers: { ...headers, ...length }, agent: false } as const
    const outgoing = request(address, options, (incoming) => {
      const headers = toHeaders(incoming.headersDistinct)
      resolve({ status: incoming.statusCode ?? 0, headers, body: incoming })
    })
    const ignore = onAbort(signal, () => outgoing.destroy(signal.reason))
    const close = (): void => {
      ignore()
      // Node says no more than this of an answer that changes the protocol.
      reject(Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' }))
    }
    outgoing.on('error', reject).on('close', close).end(body)
  })

type Lines = Readonly<Record<string, readonly string[] | undefined>>

function toHeaders(lines: Lines): Incoming['headers'] {
  return {
    get: (name) => lines[name.toLowerCase()]?.join(', ') ?? null,
    has: (name) => Object.hasOwn(lines, name.toLowerCase()),
  }
}
