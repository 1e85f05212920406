import { aborted } from '../base/abort.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import { logOf } from '../hooks/catch-up.js'
import { explainHookError } from '../hooks/explain.js'
import {
  type RegisteredHook,
  registerHook,
  unregisterHook,
  type WantedRegistration,
} from '../hooks/registration.js'
import { listSavedHooks, readHook } from '../hooks/saved.js'
import type { RepoTarget } from '../providers/provider.js'
import type { Relay } from '../relay.js'
import type { OwnApp } from '../setup/own-app.js'
import { keepCatchingUp } from './catching-up.js'
import type { OnHook } from './hook-event.js'
import type { PayloadAddress } from './payload-address.js'
import { keepTrying } from './trying.js'

/** Which hooks to have while relay runs. */
export interface HookPlan {
  readonly repos: readonly RepoTarget[]
  /** The user on whose behalf they are made. */
  readonly user: string
  /** Catch up from them, and from those that the profile has besides; and leave them at the end. */
  readonly catchUp: boolean
}

interface HooksOptions {
  readonly address: PayloadAddress
  /** The profile's App, if its webhook sends here. */
  readonly app: OwnApp | undefined
  /** Once it aborts, the profile and its hooks belong to another process. */
  readonly lost: AbortSignal
  /** Whether another relay of the same service takes the hooks over when this one ends. Default: none does. */
  readonly hasSuccessor?: () => Promise<boolean>
  readonly log?: Log
  readonly onHook?: OnHook
}

/** How long ending may take for all hooks together, in milliseconds. */
const END_LIMIT_MS = 5000
const TOO_SLOW = new RelayError(
  'provider_timeout',
  `The code host did not answer within ${END_LIMIT_MS / 1000} s`,
)

/**
 * Makes the hooks, catches up, and catches up again when the machine or the tunnel was away. What fails for a while is tried
 * again. Disposing of it removes the hooks that it made, except those that are caught up from.
 */
export function startHooks(
  relay: Relay,
  settings: Settings,
  plan: HookPlan,
  { address, app, lost, hasSuccessor, log = silentLog, onHook = () => {} }: HooksOptions,
): AsyncDisposable {
  const stop = new AbortController()
  const cut = new AbortController()
  const own = { relay, settings, plan, address, app, log, onHook }
  const parts: Parts = { ...own, stop: stop.signal, cut: cut.signal }
  const running = runAll(parts)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      // A call under way may still make a hook, which then has to go.
      const limit = setTimeout(() => cut.abort(TOO_SLOW), END_LIMIT_MS)
      const made = await running
      // What is not known is left: what a crash leaves behind is taken over, too.
      const isKept = lost.aborted || ((await hasSuccessor?.().catch(() => true)) ?? false)
      if (!isKept) await Promise.all(made.map((one) => endHook(parts, one)))
      clearTimeout(limit)
    },
  }
}

interface Parts extends Pick<Required<HooksOptions>, 'address' | 'app' | 'log' | 'onHook'> {
  readonly relay: Relay
  readonly settings: Settings
  readonly plan: HookPlan
  /** Ends every wait. */
  readonly stop: AbortSignal
  /** Ends every call. */
  readonly cut: AbortSignal
}

/** A hook of a repository, at its address. */
interface Made {
  readonly repo: RepoTarget
  readonly url: string
}

/** Resolves, once stopped, to the hooks that relay has to end. Does not reject. */
async function runAll(parts: Parts): Promise<readonly Made[]> {
  const { address, relay, plan, stop } = parts
  const url = await Promise.race([address.known, aborted(stop)])
  if (url === undefined) return []
  const saved = plan.catchUp ? await listSavedHooks(relay.database.store, relay.provider).catch(() => []) : []
  const repos = new Map([...saved, ...plan.repos].map((repo) => [nameOf(repo).toLowerCase(), repo]))
  const made = await Promise.all([...repos.values()].map((repo) => runHook(parts, { repo, url })))
  return made.flat()
}

/** Has one hook until relay stops. Resolves to it if relay has to end it. Does not reject. */
async function runHook(parts: Parts, { repo, url }: Made): Promise<readonly Made[]> {
  const isPlanned = parts.plan.repos.some((one) => nameOf(one).toLowerCase() === nameOf(repo).toLowerCase())
  const hook = await makeHook(parts, { repo, url })
  const own = isPlanned && !hook?.permanent ? [{ repo, url }] : []
  if (hook && parts.plan.catchUp) await catchUpFrom(parts, repo, hook.hook.id)
  else await aborted(parts.stop)
  return own
}

/** Tries until it is made, cannot be made, or relay stops. */
function makeHook(parts: Parts, { repo, url }: Made): Promise<RegisteredHook | undefined> {
  const { relay, plan, app, cut, stop, onHook } = parts
  const { provider, journal, database } = relay
  const name = nameOf(repo)
  const attempt = async (): Promise<RegisteredHook> => {
    const { accessToken: token } = await relay.owner(plan.user, { signal: cut })
    const wanted = await wantedHook(parts, { repo, url })
    const own = { provider, journal, findApp: () => Promise.resolve(app), store: database.store }
    const hook = await registerHook(own, { token, ...wanted }, { signal: cut })
    onHook({ repo: name, state: 'ready', hook })
    return hook
  }
  const onFailure = (error: RelayError, retries: boolean): void =>
    onHook({ repo: name, state: 'failed', error, retries })
  return keepTrying(attempt, { stop, onFailure })
}

/** With the events, and the address, that the user chose for it before. */
async function wantedHook(
  { relay, settings }: Parts,
  { repo, url }: Made,
): Promise<Omit<WantedRegistration, 'token'>> {
  const saved = await readHook(relay.database.store, relay.provider, repo)
  const chosen = saved?.chosen === true
  const secret = settings.webhookSecrets.current
  const hook = { url: chosen ? saved.url : url, secret, events: saved?.events ?? undefined }
  return { repo, settings: hook, permanent: false, chosen }
}

/** Catches up now, and whenever deliveries may have been missed, until relay stops. */
function catchUpFrom({ relay, plan, ...parts }: Parts, repo: RepoTarget, hookId: number): Promise<void> {
  const { address, stop, log, onHook } = parts
  const name = nameOf(repo)
  const token = async (): Promise<string> => (await relay.owner(plan.user, { signal: stop })).accessToken
  return keepCatchingUp({
    name,
    deliveries: logOf(relay.provider, { token, repo }, hookId),
    relay,
    address,
    log,
    stop,
    onChange: (state) => onHook({ repo: name, ...state }),
    explain: (error) => explainHookError(error, relay.provider, repo),
  })
}

/** Removes the hook, or leaves it to be caught up from. */
async function endHook({ relay, plan, cut, onHook }: Parts, { repo, url }: Made): Promise<void> {
  const name = nameOf(repo)
  if (plan.catchUp && relay.provider.hooks.log) return onHook({ repo: name, state: 'kept', url })
  try {
    const { accessToken: token } = await relay.owner(plan.user, { signal: cut })
    const { store } = relay.database
    const removed = await unregisterHook({ ...relay, store }, { token, repo, url }, { signal: cut })
    if (removed.length > 0) onHook({ repo: name, state: 'removed', url })
  } catch (thrown) {
    onHook({ repo: name, state: 'left', error: toRelayError(thrown) })
  }
}

function nameOf({ owner, repo }: RepoTarget): string {
  return `${owner}/${repo}`
}
