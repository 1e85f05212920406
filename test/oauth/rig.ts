import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Log } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import { createOAuth, type OAuthOptions } from '../../src/oauth/oauth.js'
import type { Json, Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { Tokens } from '../../src/tokens/tokens.js'
import {
  ACCESS_TOKEN,
  AuthorizationServer,
  CLIENT_ID,
  CLIENT_SECRET,
} from '../helpers/authorization-server.js'

export const NOW = Date.UTC(2030, 0, 1)
export const MINUTE = 60_000
export const TOKEN_TTL = 30 * 86_400_000
export const REDIRECT_URI = 'http://127.0.0.1:8787/auth/github/callback'

export type Rig = Awaited<ReturnType<typeof createRig>>

/** Cookies of a browser for the callback. */
export type Jar = Map<string, string>

/** A sign-in with a real store and HTTP, a fake clock and a scripted authorization server. */
export async function createRig(options: Partial<OAuthOptions> = {}) {
  const server = await AuthorizationServer.start()
  const time = { now: NOW }
  const clock = () => time.now
  const database = await openDatabase({ kind: 'memory', folder: '', clock })
  const broken = new Set<keyof Store>()
  const store = breakable(database.store, broken)
  const tokens = new Tokens(store, clock)
  const log = new RecordingLog()
  const parts: OAuthOptions = {
    provider: { name: 'github', origin: server.url, oauth: server.endpoints },
    client: { id: CLIENT_ID, secret: new Secret(CLIENT_SECRET) },
    store,
    tokens,
    redirectUri: () => REDIRECT_URI,
    tokenTtl: TOKEN_TTL,
    clock,
    log,
    ...options,
  }
  const oauth = createOAuth(parts)
  const jar: Jar = new Map()
  /** Everything that the log must not reveal. */
  const secrets = [CLIENT_SECRET, encodeURIComponent(CLIENT_SECRET), ACCESS_TOKEN]

  return {
    server,
    time,
    database,
    broken,
    tokens,
    log,
    parts,
    oauth,
    jar,
    /** Starts a sign-in in the browser with that jar. */
    async begin(userId = 'alice', cookies = jar) {
      const { location, cookie } = await oauth.authorize(userId)
      cookies.set(cookie.name, cookie.value)
      const approved = server.approve(location)
      secrets.push(cookie.value, approved.get('code') ?? '')
      return { location, cookie, approved, state: approved.get('state') ?? '' }
    },
    /** Sends the provider's callback. */
    come(query: URLSearchParams | Record<string, string>, cookies = jar) {
      return oauth.callback({ query: new URLSearchParams(query), cookies: Object.fromEntries(cookies) })
    },
    contents: () => contents(database.store),
    async [Symbol.asyncDispose]() {
      const verifiers = server.requests.map(({ form }) => form['code_verifier'] ?? '')
      const leaked = [...secrets, ...verifiers].filter((text) => text !== '' && log.text().includes(text))
      expect(leaked, 'secrets in the log').toEqual([])
      await server[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** The whole store. */
export async function contents(store: Store): Promise<Record<string, Json | undefined>> {
  const keys = await store.list('')
  return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await store.get(key)] as const)))
}

/** Result of a callback: the outcome, the number of calls to the token endpoint, and the whole store. */
export async function result(rig: Rig, query: URLSearchParams, cookies: Jar = rig.jar) {
  const outcome = await rig.come(query, cookies)
  return { outcome, asked: rig.server.requests.length, store: await rig.contents() }
}

/** Result of a callback that ends before any request to the provider and leaves nothing. */
export function nothing(reason: string) {
  return { outcome: failure(reason), asked: 0, store: {} }
}

export const failure = (reason: string) => ({ auth: 'error', reason })
export const SIGNED_IN = { auth: 'success', userId: 'alice' }

/** The whole store after Alice's sign-in at `since` and nothing else. */
export function signedIn(rig: Rig, expiresAt: number): Record<string, Json> {
  const token = createHash('sha256').update(ACCESS_TOKEN).digest('hex')
  const { origin } = rig.parts.provider
  return {
    'token:alice': { accessToken: ACCESS_TOKEN, expiresAt: new Date(expiresAt).toISOString() },
    'origin:alice': { origin, token },
    [`bearer:${token}:alice`]: true,
  }
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

export class RecordingLog implements Log {
  readonly lines: string[] = []
  readonly #causes: unknown[] = []

  debug(message: string): void {
    this.lines.push(`debug ${message}`)
  }

  info(message: string): void {
    this.lines.push(`info ${message}`)
  }

  warn(message: string): void {
    this.lines.push(`warn ${message}`)
  }

  error(message: string, cause?: unknown): void {
    this.lines.push(`error ${message}`)
    this.#causes.push(cause)
  }

  /** Everything that a log could print. */
  text(): string {
    return [
      ...this.lines,
      ...this.#causes.map((cause) => inspect(cause, { depth: 10, showHidden: true })),
    ].join('\n')
  }
}
