import type { Dispatcher } from 'undici'
import { isLoopback } from '../base/loopback.js'

interface Outbound {
  readonly direct: typeof fetch
  readonly proxied: typeof fetch
}

let outbound: Promise<Outbound> | undefined

/**
 * `fetch` for calls that leave relay: through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, except
 * to this machine itself. undici is loaded by the first call. Takes an address, not a `Request`.
 */
export const outboundFetch: typeof fetch = async (input, init) => {
  if (input instanceof Request) throw new TypeError('outboundFetch takes an address')
  outbound ??= load()
  const { direct, proxied } = await outbound
  return isLoopback(new URL(input).hostname) ? direct(input, init) : proxied(input, init)
}

async function load(): Promise<Outbound> {
  const { Agent, EnvHttpProxyAgent, fetch } = await import('undici')
  // No connection is used twice: on a kept one that the other side has just closed, a write fails and nobody
  // can tell whether it arrived.
  const direct = new Agent({ pipelining: 0 })
  const proxied = new EnvHttpProxyAgent({ pipelining: 0 })
  const through = (dispatcher: Dispatcher) => {
    const call = (input: string | URL, init?: object) => fetch(input, { ...init, dispatcher })
    // Node's own fetch is an older undici, so the types differ, in places that no caller here uses.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return call as unknown as typeof globalThis.fetch
  }
  return { direct: through(direct), proxied: through(proxied) }
}
