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

/** The secrets among the fields that a code host is sent or gives. */
const KINDS = {
  client_secret: 'client secret',
  webhook_secret: 'webhook secret',
  access_token: 'access token',
  refresh_token: 'refresh token',
  device_code: 'device code',
  code_verifier: 'PKCE verifier',
}

/** The secrets that a code host was sent or gave, by what they are: what a canary is to look for, without a look into any store. */
export function sentSecrets(requests: readonly Tapped[]): Map<string, string> {
  const secrets = new Map<string, string>()
  const add = (value: unknown, kind: string): void => {
    if (typeof value === 'string' && value !== '') secrets.set(value, kind)
  }
  for (const { authorization, body, answer } of requests) {
    const [scheme = '', value = ''] = authorization.split(' ')
    if (/^bearer$/i.test(scheme)) add(value, value.includes('.') ? 'JWT' : 'access token')
    if (/^basic$/i.test(scheme)) add(Buffer.from(value, 'base64').toString().split(':')[1], 'client secret')
    const sent = fieldsOf(body)
    add(sent['secret'] ?? Object(sent['config'])['secret'], 'webhook secret')
    const given = fieldsOf(answer)
    for (const fields of [sent, given])
      for (const [name, kind] of Object.entries(KINDS)) add(fields[name], kind)
    // A line of its own, since texts write the ends of lines in several ways.
    if (typeof given['pem'] === 'string') add(given['pem'].split('\n')[1], 'App key')
  }
  return secrets
}

/** The fields of JSON or of a form; of a page, or an answer that is broken on purpose, none that count. */
function fieldsOf(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return Object.fromEntries(new URLSearchParams(text))
  }
}
