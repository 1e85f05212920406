import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** A request, with the body as far as the server has read it, and that of the answer as far as it was written. */
export interface Tapped {
  readonly url: string
  readonly authorization: string
  body: string
  answer: string
}

/** Collects every request that servers of this process get at a port, without disturbing how they read it. */
export function tapRequests(port: number): { readonly requests: readonly Tapped[] } & Disposable {
  const requests: Tapped[] = []
  const onRequest = (message: unknown): void => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as Node documents the channel
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    if (request.socket.localPort !== port) return
    const tapped: Tapped = {
      url: request.url ?? '',
      authorization: request.headers.authorization ?? '',
      body: '',
      answer: '',
    }
    requests.push(tapped)
    const emit = request.emit.bind(request)
    request.emit = (name: string | symbol, ...args: unknown[]): boolean => {
      if (name === 'data') tapped.body += String(args[0])
      return emit(name, ...args)
    }
    const kept = (name: 'write' | 'end') => {
      const call = response[name].bind(response)
      return (...args: unknown[]): unknown => {
        const [chunk] = args
        if (typeof chunk === 'string' || chunk instanceof Uint8Array)
          tapped.answer += Buffer.from(chunk).toString()
        return Reflect.apply(call, response, args)
      }
    }
    Object.assign(response, { write: kept('write'), end: kept('end') })
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

/** Those that a code host gives a program in its answers. */
const GIVEN = [
  ['client_secret', 'client secret'],
  ['webhook_secret', 'webhook secret'],
  ['access_token', 'access token'],
  ['refresh_token', 'refresh token'],
  ['device_code', 'device code'],
] as const

/** The secrets that a code host was sent or gave, by what they are: what a canary is to look for, without a look into any store. */
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
  for (const { answer } of requests) addGiven(secrets, answer)
  secrets.delete('')
  return secrets
}

function addGiven(secrets: Map<string, string>, answer: string): void {
  let given: Record<string, unknown>
  try {
    given = Object(JSON.parse(answer))
  } catch {
    // A page, or a broken answer on purpose.
    return
  }
  for (const [name, kind] of GIVEN) {
    const value = given[name]
    if (typeof value === 'string') secrets.set(value, kind)
  }
  // A line of its own, since texts write the ends of lines in several ways.
  if (typeof given['pem'] === 'string') secrets.set(given['pem'].split('\n')[1] ?? '', 'App key')
}
