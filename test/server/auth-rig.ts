import { Secret } from '../../src/base/secret.js'
import type { ProviderName } from '../../src/base/settings.js'
import { hostCheck } from '../../src/http/router.js'
import { listen, type ListenOptions } from '../../src/http/listen.js'
import { Journal } from '../../src/journal/journal.js'
import { createOAuth, type OAuthOptions } from '../../src/oauth/oauth.js'
import { createProvider } from '../../src/providers/open.js'
import { createApp } from '../../src/server/app.js'
import { createIntake } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import { SECRET } from '../helpers/delivery.js'
import { exchange, requestText } from '../kit/http.js'
import { nowhere } from '../helpers/journal.js'
import { createRig, RecordingLog } from '../oauth/rig.js'

export const JSON_TYPE = 'application/json'

interface RelayOptions extends Partial<OAuthOptions> {
  readonly name?: ProviderName
  readonly providerUrl?: string
  readonly baseUrl?: string
  readonly ready?: () => Promise<void>
  /** Of the listener, in milliseconds. */
  readonly limits?: ListenOptions['limits']
}

/** The application on a real port, with real parts behind it. */
export async function startRelay(given: RelayOptions = {}) {
  const { name = 'github', baseUrl, providerUrl, limits, ready = async () => {}, ...options } = given
  const rig = await createRig()
  const provider = createProvider({ name, url: providerUrl ?? rig.server.url })
  let url = ''
  const redirectUri = options.redirectUri ?? (() => `${url}/auth/${name}/callback`)
  const oauth = createOAuth({ ...rig.parts, provider, ...options, redirectUri })
  const log = new RecordingLog()
  const journal = new Journal(rig.database.sql)
  const secrets = { current: new Secret(SECRET) }
  const app = createApp({
    provider,
    intake: createIntake({ senders: () => ({ scheme: provider.webhook, secrets }), journal, plan: nowhere }),
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
    async [Symbol.asyncDispose]() {
      await listener.close()
      await rig[Symbol.asyncDispose]()
    },
  }
}
