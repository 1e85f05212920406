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
import type { PayloadAddress } from './tunnel.js'
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
      const { removal } = relay.limits
      const tooSlow = `The code host did not answer within ${removal / 1000} s`
      const limit = setTimeout(() => cut.abort(new RelayError('provider_timeout', tooSlow)), removal)
      const url = await running
      // What is not known is left: what a crash leaves behind is taken over, too.
      const isKept = lost.aborted || ((await hasSuccessor?.().catch(() => true)) ?? false)
      if (url !== undefined && !isKept)
        await Promise.all(distinct(plan.repos).map((repo) => endHook(parts, { repo, url })))
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

/** The hook of a repository, and the address that it is to have. */
interface HookPlace {
  readonly repo: RepoTarget
  readonly url: string
}

/** Resolves, once stopped, to the address of the hooks if there was one. Does not reject. */
async function runAll(parts: Parts): Promise<string | undefined> {
  const { address, relay, plan, stop } = parts
  const url = await Promise.race([address.known, aborted(stop)])
  if (url === undefined) return undefined
  const saved = plan.catchUp ? await listSavedHooks(relay.database.store, relay.provider).catch(() => []) : []
  await Promise.all(distinct([...saved, ...plan.repos]).map((repo) => runHook(parts, { repo, url })))
  return url
}

/** Names of repositories have no capitals of their own; the last of several counts. */
function distinct(repos: readonly RepoTarget[]): readonly RepoTarget[] {
  return [...new Map(repos.map((repo) => [nameOf(repo).toLowerCase(), repo])).values()]
}

/** Has one hook until relay stops. Does not reject. */
async function runHook(parts: Parts, { repo, url }: HookPlace): Promise<void> {
  const hook = await makeHook(parts, { repo, url })
  if (hook && parts.plan.catchUp) await catchUpFrom(parts, repo, hook.hook.id)
  else await aborted(parts.stop)
}

/** Tries until it is made, cannot be made, or relay stops. */
function makeHook(parts: Parts, { repo, url }: HookPlace): Promise<RegisteredHook | undefined> {
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
  return keepTrying(attempt, { stop, onFailure, signInLook: relay.limits.signInLook })
}

/** With the events, and the address, that the user chose for it before. */
async function wantedHook(
  { relay, settings }: Parts,
  { repo, url }: HookPlace,
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

/** Removes the hook if relay serve made it, or leaves it to be caught up from. */
async function endHook({ relay, plan, cut, onHook }: Parts, { repo, url }: HookPlace): Promise<void> {
  const name = nameOf(repo)
  const { provider } = relay
  const { store } = relay.database
  try {
    const saved = await readHook(store, provider, repo)
    if (!saved || saved.permanent) return
    if (plan.catchUp && provider.hooks.log) return onHook({ repo: name, state: 'kept', url })
    const { accessToken: token } = await relay.owner(plan.user, { signal: cut })
    const removed = await unregisterHook({ provider, store }, { token, repo, url }, { signal: cut })
    if (removed.length > 0) onHook({ repo: name, state: 'removed', url })
  } catch (thrown) {
    onHook({ repo: name, state: 'left', error: toRelayError(thrown) })
  }
}

function nameOf({ owner, repo }: RepoTarget): string {
  return `${owner}/${repo}`
}
