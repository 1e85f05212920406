import { Secret } from '../../src/base/secret.js'
import type { ProviderName } from '../../src/base/settings.js'
import { hostCheck } from '../../src/http/host.js'
import { listen, type ListenOptions } from '../../src/http/listen.js'
import { openJournal } from '../../src/journal/open.js'
import { createOAuth, type OAuthOptions } from '../../src/oauth/oauth.js'
import { createProvider } from '../../src/providers/open.js'
import { createApp } from '../../src/server/app.js'
import { createIntake } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import { SECRET } from '../helpers/delivery.js'
import { exchange, requestText, type Answer } from '../helpers/http.js'
import { createRig, RecordingLog } from '../oauth/rig.js'

export const JSON_TYPE = 'application/json'
/** On every answer about signing in. */
export const PRIVATE = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

interface RelayOptions extends Partial<OAuthOptions> {
  readonly name?: ProviderName
  readonly providerUrl?: string
  readonly baseUrl?: string
  readonly ready?: () => Promise<void>
  /** Of the listener, in milliseconds. */
  readonly limits?: ListenOptions['limits']
}

export type Relay = Awaited<ReturnType<typeof startRelay>>

/** The application on a real port, with real parts behind it. */
export async function startRelay(given: RelayOptions = {}) {
  const { name = 'github', baseUrl, providerUrl, limits, ready = async () => {}, ...options } = given
  const rig = await createRig()
  const provider = createProvider({ name, url: providerUrl ?? rig.server.url })
  let url = ''
  const redirectUri = options.redirectUri ?? (() => `${url}/auth/${name}/callback`)
  const oauth = createOAuth({ ...rig.parts, provider, ...options, redirectUri })
  const log = new RecordingLog()
  const journal = openJournal(rig.database.sql)
  const secrets = { current: new Secret(SECRET) }
  const app = createApp({
    provider,
    intake: createIntake({ provider, secrets, journal }),
    refusals: new Refusals({ scheme: provider.webhook, secrets, maxBody: 1024, log }),
    oauth,
    tokens: rig.tokens,
    maxBody: 1024,
    baseUrl: () => baseUrl ?? `${url}/`,
    hostAllowed: hostCheck({ host: '127.0.0.1', allowed: [] }),
    prove: () => undefined,
    ready,
    renew: () => Promise.reject(new Error('unreachable: this is no instance')),
    routes: () => Promise.reject(new Error('unreachable: this is no instance')),
    revoke: () => Promise.reject(new Error('unreachable: this is no instance')),
    log,
  })
  const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log, ...(limits && { limits }) })
  url = listener.url
  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    exchange(listener.port, requestText(method, path, headers))
  return {
    url,
    port: listener.port,
    rig,
    log,
    journal,
    ask,
    /** Starts signing in and lets the user agree: the address to come back to, and the browser's cookie. */
    async agreed(userId = 'alice') {
      const { headers } = await ask('GET', `/auth/${name}?userId=${encodeURIComponent(userId)}`)
      const query = rig.server.approve(headers['location'] ?? '')
      const [cookie = ''] = headers['set-cookie']?.split(';') ?? []
      return { query, cookie, back: `/auth/${name}/callback?${query.toString()}` }
    },
    async [Symbol.asyncDispose]() {
      await listener.close()
      await rig[Symbol.asyncDispose]()
    },
  }
}

/** What matters of an answer. */
export function brief({ status, headers, body }: Answer) {
  const { 'cache-control': cache = '', 'referrer-policy': referrer = '' } = headers
  return { status, type: headers['content-type'], body, 'cache-control': cache, 'referrer-policy': referrer }
}

/** An error's answer, so abridged. */
export function refused(status: number, error: string) {
  return { status, type: JSON_TYPE, body: JSON.stringify({ error }), ...PRIVATE }
}
