import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { Secret } from '../../base/secret.js'
import type { Clock } from '../../base/time.js'
import type { Hook } from '../hooks/hook.js'
import type { Hooks } from '../hooks/hooks.js'
import type { Clients } from '../oauth/clients.js'
import { Once } from '../oauth/once.js'
import { randomSecret } from '../oauth/secrets.js'
import { timestamp } from '../state.js'
import type { Manifest } from './manifest.js'

/** GitHub's limit for the Apps of an account (https://docs.github.com/apps/creating-github-apps). */
const APP_LIMIT = 100
/** The whole manifest flow ends after an hour. */
const FLOW_MS = 3_600_000
/** First id of an App, and how far that of its installation is from it. */
const FIRST_ID = 301
const INSTALLATION_OFFSET = 100

const makeKeys = promisify(generateKeyPair)

/** A registered App. */
export interface App {
  readonly id: number
  readonly slug: string
  /** Login of the account that it belongs to: the user, or an organization. */
  readonly owner: string
  readonly manifest: Manifest
  readonly clientId: string
  /** Public key in PEM, which verifies the App's tokens. */
  readonly publicKey: string
  readonly hookId: number | undefined
  readonly createdAt: string
  readonly installation: { readonly id: number; readonly createdAt: string } | undefined
}

/** What only the conversion of the code shows. */
export interface AppSecrets {
  readonly clientSecret: string
  readonly webhookSecret: string | null
  /** Private key in PEM (PKCS #1). */
  readonly pem: string
}

/** What the user is asked to register. */
export interface Registration {
  readonly manifest: Manifest
  readonly owner: string
  readonly state: string | undefined
}

/** Registered Apps, and the manifest flow that registers them. */
export class Apps {
  /** Open pages of the manifest flow. */
  readonly pages: Once<Registration>
  /** Ids of the Apps of open installation pages. */
  readonly installPages: Once<number>
  readonly #codes: Once<Registration>
  readonly #clock: Clock
  readonly #clients: Clients
  readonly #hooks: Hooks
  readonly #apps = new Map<number, App>()

  constructor({ clock, clients, hooks }: { clock: Clock; clients: Clients; hooks: Hooks }) {
    this.pages = new Once(clock, FLOW_MS)
    this.installPages = new Once(clock, FLOW_MS)
    this.#codes = new Once(clock, FLOW_MS)
    this.#clock = clock
    this.#clients = clients
    this.#hooks = hooks
  }

  /** App with this id or client id: a token's `iss` may be either. */
  find(issuer: string): App | undefined {
    return [...this.#apps.values()].find(({ id, clientId }) => String(id) === issuer || clientId === issuer)
  }

  bySlug(slug: string): App | undefined {
    return [...this.#apps.values()].find((app) => app.slug === slug)
  }

  /** Why no App can have this name, for the user. */
  refusal(name: string): string | undefined {
    if (slugOf(name) === '') return 'The App needs a name.'
    if (this.bySlug(slugOf(name))) return 'Name is already taken.'
    return this.#apps.size < APP_LIMIT ? undefined : `An account has at most ${APP_LIMIT} Apps.`
  }

  /** Issues the code of an agreed registration, which is converted once, within an hour. */
  issueCode(registration: Registration): string {
    return this.#codes.put(registration)
  }

  /** Registers the App of a code, with its client and its hook. Undefined when the code is not valid. */
  async convert(code: string): Promise<{ app: App; secrets: AppSecrets } | undefined> {
    const registration = this.#codes.take(code)
    if (!registration) return undefined
    const { manifest, owner } = registration
    const keys = await makeKeys('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    })
    if (this.refusal(manifest.name) !== undefined) return undefined
    const id = FIRST_ID + this.#apps.size
    const [clientSecret, webhookSecret] = [randomSecret(), randomSecret()]
    const hook = manifest.hook && this.#addHook(id, manifest, manifest.hook.url, webhookSecret)
    const app: App = {
      id,
      slug: slugOf(manifest.name),
      owner,
      manifest,
      clientId: `Iv23li${randomSecret().slice(0, 14)}`,
      publicKey: keys.publicKey,
      hookId: hook?.id,
      createdAt: timestamp(this.#clock()),
      installation: undefined,
    }
    this.#apps.set(id, app)
    this.#addClient(app, clientSecret)
    return {
      app,
      secrets: { clientSecret, webhookSecret: hook ? webhookSecret : null, pem: keys.privateKey },
    }
  }

  /** Installs the App on the account. From then on its hook gets events, and its users have its permissions. */
  install(app: App): App {
    if (app.installation) return app
    const id = app.id + INSTALLATION_OFFSET
    const installed = { ...app, installation: { id, createdAt: timestamp(this.#clock()) } }
    this.#apps.set(app.id, installed)
    const hook = this.hookOf(app)
    if (hook) this.#hooks.install(hook, id, app.manifest.hook?.active ?? false)
    return installed
  }

  hookOf({ hookId }: App): Hook | undefined {
    return hookId === undefined ? undefined : this.#hooks.get(hookId)
  }

  #addHook(id: number, { events }: Manifest, url: string, secret: string): Hook {
    return this.#hooks.add({
      repo: undefined,
      app: { id, installationId: undefined },
      active: false,
      events: ['installation', ...events],
      config: { url: () => url, contentType: 'json', insecureSsl: '0', secret: new Secret(secret) },
    })
  }

  /** Like GitHub's, device flow is off until the owner switches it on. */
  #addClient({ id, clientId, manifest }: App, secret: string): void {
    const isInstalled = (): boolean => this.#apps.get(id)?.installation !== undefined
    const permissions = (): Manifest['permissions'] => (isInstalled() ? manifest.permissions : {})
    this.#clients.add({ id: clientId, secret: new Secret(secret), deviceFlow: false, permissions })
  }
}

/** Name of the App in addresses. */
function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}
