import { inspect } from 'node:util'
import type { RenewParts } from '../../src/auth/renew.js'
import type { SignInParts } from '../../src/auth/sign-in.js'
import { RelayError } from '../../src/base/errors.js'
import { createLogThrottle } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import type { CodeHost } from '../../src/codehost/host.js'
import { openHost } from '../../src/codehost/hosts.js'
import type { OutboundRequest, SendOnce } from '../../src/net/client.js'
import type { Json, Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { RecordingLog } from './recording-log.js'

export const NOW = Date.UTC(2030, 0, 1)
export const MINUTE = 60_000
export const TOKEN_TTL = 30 * 86_400_000
export const WEB = 'https://git.example'
export const REDIRECT_URI = 'http://127.0.0.1:8787/auth/github/callback'
export const CLIENT = { id: 'the-client', secret: new Secret('the-client-secret') }
export const ACCESS_TOKEN = 'gho_the-access-token'

export interface Answer {
  /** Default: 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: string | object
}

/** `reset`: the connection ends. `hang`: no answer until the signal aborts. */
export type Reply = Answer | 'reset' | 'hang'

export interface Asked {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
}

/** A code host's servers without a network: each request is answered by `reply`. */
export function servers(reply: (asked: Asked) => Reply | Promise<Reply>): {
  readonly sendOnce: SendOnce
  readonly asked: Asked[]
} {
  const asked: Asked[] = []
  const sendOnce: SendOnce = async (url, request) => {
    request.signal?.throwIfAborted()
    const one = toAsked(url, request)
    asked.push(one)
    const answer = await reply(one)
    if (answer === 'hang') await aborted(request.signal)
    if (answer === 'hang' || answer === 'reset')
      throw Object.assign(new Error(`reset while it sent ${String(request.body)}`), { code: 'ECONNRESET' })
    const { status = 200, headers = {}, body = '' } = answer
    const all = typeof body === 'string' ? headers : { 'content-type': 'application/json', ...headers }
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    return {
      status,
      header: (name) => all[name],
      body: (async function* () {
        yield bytes
      })(),
      discard: () => {},
    }
  }
  return { sendOnce, asked }
}

function toAsked(url: string, { method, headers, body = '' }: OutboundRequest): Asked {
  return { url, method, headers, form: Object.fromEntries(new URLSearchParams(String(body))) }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason))
  })
}

/** What a sign-in and a renewal work with, in memory and in made-up time. */
export async function createRig(
  reply: (asked: Asked) => Reply | Promise<Reply>,
  { name = 'github', ...changes }: Partial<SignInParts> & { readonly name?: 'github' | 'gitea' } = {},
) {
  const { sendOnce, asked } = servers(reply)
  const time = { now: NOW }
  const clock = (): number => time.now
  const database = await openDatabase({ kind: 'memory', folder: '', clock })
  const broken = new Set<keyof Store>()
  const store = breakable(database.store, broken)
  const tokens = new Tokens(store, clock)
  const log = new RecordingLog()
  const host: CodeHost = openHost({ name, url: WEB, sendOnce })
  const parts: SignInParts & RenewParts = {
    host,
    client: CLIENT,
    store,
    redirectUri: () => REDIRECT_URI,
    tokenTtl: TOKEN_TTL,
    clock,
    log,
    throttle: createLogThrottle(log),
    sendOnce,
    ...changes,
    tokens,
  }
  return {
    asked,
    time,
    host,
    store,
    tokens,
    log,
    parts,
    broken,
    contents: () => contents(database.store),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** The whole store. */
export async function contents(store: Store): Promise<Record<string, Json | undefined>> {
  const keys = await store.list('')
  return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await store.get(key)] as const)))
}

/** The same store, whose methods named in `broken` fail like a full disk. */
function breakable(store: Store, broken: ReadonlySet<keyof Store>): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name].bind(target)
      return broken.has(name) ? () => Promise.reject(new RelayError('storage', 'The store failed')) : method
    },
  })
}

/** Kind and message of what a call throws, and all that somebody could print of it. */
export async function failure(
  call: Promise<unknown>,
): Promise<{ readonly kind: unknown; readonly message: unknown; readonly shown: string }> {
  const error: unknown = await call.then(
    (value) => new Error(`resolved to ${inspect(value)}`),
    (thrown: unknown) => thrown,
  )
  const { kind, message }: { kind?: unknown; message?: unknown } = Object(error)
  return { kind, message, shown: inspect(error, { depth: 10, showHidden: true }) }
}
