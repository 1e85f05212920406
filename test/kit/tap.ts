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

const FIELDS = [
  ['client_secret', 'client secret'],
  ['code_verifier', 'PKCE verifier'],
  ['device_code', 'device code'],
  ['refresh_token', 'refresh token'],
] as const

/** The secrets that a code host was sent, by what they are: what a canary is to look for, without a look into any store. */
export function sentSecrets(requests: readonly Tapped[]): Map<string, string> {
  const secrets = new Map<string, string>()
  for (const { authorization, body } of requests) {
    const [scheme = '', value = ''] = authorization.split(' ')
    if (/^bearer$/i.test(scheme)) secrets.set(value, value.includes('.') ? 'JWT' : 'access token')
    if (/^basic$/i.test(scheme))
      secrets.set(Buffer.from(value, 'base64').toString().split(':')[1] ?? '', 'client secret')
    if (body.startsWith('{')) {
      const { secret, config }: { secret?: string; config?: { secret?: string } } = JSON.parse(body)
      secrets.set(secret ?? config?.secret ?? '', 'webhook secret')
      continue
    }
    const fields = new URLSearchParams(body)
    for (const [name, kind] of FIELDS) secrets.set(fields.get(name) ?? '', kind)
  }
  secrets.delete('')
  return secrets
}
