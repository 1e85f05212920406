import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { Context } from 'hono'
import { generateCookie, getCookie } from 'hono/cookie'
import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { HttpEnv } from '../http/body.js'
import { hostCheck, createRouter } from '../http/router.js'
import { listen } from '../http/listen.js'
import { stateOf } from '../oauth/state.js'
import type { AppCalls, AppRequest, RegisteredApp } from '../providers/registration.js'
import { donePage, failedPage, startPage, uninvitedPage } from './pages.js'

/** Time limit for a person to register the App: 15 minutes, in milliseconds. GitHub's own limit is an hour. */
export const FLOW_LIMIT = 900_000
/** How long a page that is being sent may take when the flow ends, in milliseconds. */
const GRACE_MS = 2_000

const HOST = '127.0.0.1'
const CALLBACK = '/setup/callback'
const COOKIE = 'relay_setup'

export interface ManifestFlowOptions extends Cancellable {
  readonly apps: AppCalls
  /** Web address of the code host. */
  readonly providerUrl: string
  readonly organization: string | undefined
  readonly app: Omit<AppRequest, 'redirectUrl'>
  readonly log: Log
  /** Called with the address to open in a browser. */
  readonly onListening: (address: string) => Promise<void>
  /** Stores what the code host sent. The browser's page waits for it. */
  readonly store: (registered: RegisteredApp) => Promise<void>
}

/**
 * Registers an App by the manifest flow
 * (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest), with a listener of its own on a free
 * loopback port that answers until the flow ends. An answer counts once, with the state and the cookie of this flow; any other
 * changes nothing.
 * @throws RelayError as `AppCalls.convert` and `store`; `timed_out` after {@link FLOW_LIMIT}; `unavailable` if it cannot listen
 */
export async function runManifestFlow(options: ManifestFlowOptions): Promise<RegisteredApp> {
  const flow = new Flow(options)
  const router = createRouter({ hostAllowed: hostCheck({ host: HOST, allowed: [] }), log: options.log })
    .get(`/setup/${flow.key}`, () => flow.start())
    .get(CALLBACK, (c) => flow.answer(c))
  const listener = await listen(router.fetch, {
    host: HOST,
    port: 0,
    log: options.log,
    limits: { grace: GRACE_MS },
  })
  flow.origin = listener.url
  try {
    const signal = deadline(FLOW_LIMIT, options.signal)
    const ended = flow.ended(signal)
    ended.catch(() => {})
    await options.onListening(`${listener.url}/setup/${flow.key}`)
    return await ended
  } finally {
    await listener.close()
  }
}

class Flow {
  /** Part of the start address, so that no other page of this browser can start the flow. */
  readonly key = random()
  origin = ''
  readonly #cookie = random()
  readonly #options: ManifestFlowOptions
  readonly #events = new EventEmitter()
  #outcome: Promise<RegisteredApp> | undefined

  constructor(options: ManifestFlowOptions) {
    this.#options = options
  }

  /** Page that posts the manifest. It can be opened again, after a flow that was left half way. */
  async start(): Promise<Response> {
    const { apps, organization, app, providerUrl } = this.#options
    const action = `${apps.page(organization)}?state=${stateOf(this.#cookie)}`
    const manifest = apps.manifest({ ...app, redirectUrl: this.origin + CALLBACK })
    const page = await startPage({ action, manifest, providerUrl, app })
    const cookie = generateCookie(COOKIE, this.#cookie, { httpOnly: true, sameSite: 'Lax', path: CALLBACK })
    page.headers.append('Set-Cookie', cookie)
    return page
  }

  async answer(c: Context<HttpEnv>): Promise<Response> {
    const { searchParams } = new URL(c.req.url)
    const [code, ...more] = searchParams.getAll('code')
    const isOurs =
      getCookie(c, COOKIE) === this.#cookie && searchParams.getAll('state').join() === stateOf(this.#cookie)
    if (!isOurs || this.#outcome || !code || more.length > 0) return uninvitedPage()
    this.#outcome = this.#register(code)
    this.#events.emit('answer')
    try {
      return await donePage((await this.#outcome).installUrl)
    } catch (error) {
      return failedPage(toRelayError(error).message)
    }
  }

  /** Not stopped by Ctrl-C: the App exists, and its secrets are shown only once. */
  async #register(code: string): Promise<RegisteredApp> {
    const registered = await this.#options.apps.convert(code)
    await this.#options.store(registered)
    return registered
  }

  async ended(signal: AbortSignal): Promise<RegisteredApp> {
    try {
      if (!this.#outcome) await once(this.#events, 'answer', { signal })
    } catch (error) {
      this.#options.signal?.throwIfAborted()
      if (!signal.aborted) throw error
      throw new RelayError('timed_out', 'No App was registered within 15 minutes. Run relay setup again')
    }
    if (this.#outcome) return this.#outcome
    throw new Error('unreachable: there is an answer')
  }
}

function random(): string {
  return randomBytes(32).toString('base64url')
}
