import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/** A request, with the body as far as the server has read it. */
export interface Tapped {
  readonly url: string
  readonly authorization: string
  body: string
}

/** Collects every request that servers of this process get at a port, without disturbing how they read it. */
export function tapRequests(port: number): { readonly requests: readonly Tapped[] } & Disposable {
  const requests: Tapped[] = []
  const onRequest = (message: unknown): void => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as Node documents the channel
    const { request } = message as { readonly request: IncomingMessage }
    if (request.socket.localPort !== port) return
    const tapped: Tapped = {
      url: request.url ?? '',
      authorization: request.headers.authorization ?? '',
      body: '',
    }
    requests.push(tapped)
    const emit = request.emit.bind(request)
    request.emit = (name: string | symbol, ...args: unknown[]): boolean => {
      if (name === 'data') tapped.body += String(args[0])
      return emit(name, ...args)
    }
  }
  subscribe('http.server.request.start', onRequest)
  return {
    requests,
    [Symbol.dispose]: () => void unsubscribe('http.server.request.start', onRequest),
  }
}
