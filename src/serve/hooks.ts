import { aborted } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import {
  explainLogError,
  type HookPlace,
  type RegisteredHook,
  registerHook,
  SavedHooks,
  unregisterHook,
  type WantedHook,
} from '../codehost/hooks.js'
import type { Repo } from '../codehost/host.js'
import type { Relay } from '../relay.js'
import { keepCatchingUp } from './catching-up.js'
import type { OnHook } from './hook-event.js'
import type { PayloadAddress } from './tunnel.js'
import { keepTrying } from './trying.js'

/** Which hooks to have while relay runs. */
export interface HookPlan {
  readonly repos: readonly Repo[]
  /** The user on whose behalf they are made. */
  readonly user: string
  /** Catch up from them, and from those that the profile has besides; and leave them at the end. */
  readonly catchUp: boolean
}

interface HooksOptions {
  readonly address: PayloadAddress
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
  { address, lost, hasSuccessor, log = silentLog, onHook = () => {} }: HooksOptions,
): AsyncDisposable {
  const stop = new AbortController()
  const cut = new AbortController()
  const own = { relay, settings, plan, address, log, onHook }
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

interface Parts extends Pick<Required<HooksOptions>, 'address' | 'log' | 'onHook'> {
  readonly relay: Relay
  readonly settings: Settings
  readonly plan: HookPlan
  /** Ends every wait. */
  readonly stop: AbortSignal
  /** Ends every call. */
  readonly cut: AbortSignal
}

/** The hook of a repository, and the address that it is to have. */
interface Wanted {
  readonly repo: Repo
  readonly url: string
}

/** Resolves, once stopped, to the address of the hooks if there was one. Does not reject. */
async function runAll(parts: Parts): Promise<string | undefined> {
  const { address, relay, plan, stop } = parts
  const url = await Promise.race([address.known, aborted(stop)])
  if (url === undefined) return undefined
  const saved = plan.catchUp
    ? await savedHooks(relay)
        .list()
        .catch(() => [])
    : []
  await Promise.all(distinct([...saved, ...plan.repos]).map((repo) => runHook(parts, { repo, url })))
  return url
}

/** Names of repositories have no capitals of their own; the last of several counts. */
function distinct(repos: readonly Repo[]): readonly Repo[] {
  return [...new Map(repos.map((repo) => [nameOf(repo).toLowerCase(), repo])).values()]
}

/** Has one hook until relay stops. Does not reject. */
async function runHook(parts: Parts, { repo, url }: Wanted): Promise<void> {
  const hook = await makeHook(parts, { repo, url })
  if (hook && parts.plan.catchUp) await catchUpFrom(parts, repo, hook.hook.id)
  else await aborted(parts.stop)
}

/** Tries until it is made, cannot be made, or relay stops. */
function makeHook(parts: Parts, { repo, url }: Wanted): Promise<RegisteredHook | undefined> {
  const { relay, cut, stop, onHook } = parts
  const name = nameOf(repo)
  const attempt = async (): Promise<RegisteredHook> => {
    const place = placeOf(parts, repo, cut)
    const hook = await registerHook(place, await wantedHook(parts, place, url))
    onHook({ repo: name, state: 'ready', hook })
    return hook
  }
  const onFailure = (error: RelayError, retries: boolean): void =>
    onHook({ repo: name, state: 'failed', error, retries })
  return keepTrying(attempt, { stop, onFailure, signInLook: relay.limits.signInLook })
}

/** The hooks of a repository as the plan's user may manage them; the signal cancels the calls. */
function placeOf({ relay, plan }: Pick<Parts, 'relay' | 'plan'>, repo: Repo, signal: AbortSignal): HookPlace {
  const { host } = relay
  const token = async (): Promise<string> => (await relay.owner(plan.user, { signal })).accessToken
  return { host, hooks: host.as(token, { signal }).hooks, saved: savedHooks(relay), repo }
}

function savedHooks({ database, host }: Relay): SavedHooks {
  return new SavedHooks(database.store, host)
}

/** With the events, and the address, that the user chose for it before. */
async function wantedHook({ settings }: Parts, { saved, repo }: HookPlace, url: string): Promise<WantedHook> {
  const before = await saved.get(repo)
  const chosen = before?.chosen === true
  const secret = settings.webhookSecrets.current
  const hook = { url: chosen ? before.url : url, secret, events: before?.events ?? undefined }
  return { settings: hook, permanent: false, chosen }
}

/** Catches up now, and whenever deliveries may have been missed, until relay stops. */
async function catchUpFrom({ relay, plan, ...parts }: Parts, repo: Repo, hookId: number): Promise<void> {
  const { address, stop, log, onHook } = parts
  const name = nameOf(repo)
  const place = placeOf({ relay, plan }, repo, stop)
  const deliveries = place.hooks.log?.(repo, hookId)
  if (!deliveries) return aborted(stop)
  return keepCatchingUp({
    name,
    deliveries,
    relay,
    address,
    log,
    stop,
    onChange: (state) => onHook({ repo: name, ...state }),
    explain: (error) => explainLogError(error, place),
  })
}

/** Removes the hook if relay serve made it, or leaves it to be caught up from. */
async function endHook({ relay, plan, cut, onHook }: Parts, { repo, url }: Wanted): Promise<void> {
  const name = nameOf(repo)
  try {
    const place = placeOf({ relay, plan }, repo, cut)
    const saved = await place.saved.get(repo)
    if (!saved || saved.permanent) return
    if (plan.catchUp && place.hooks.log) return onHook({ repo: name, state: 'kept', url })
    const removed = await unregisterHook(place, url)
    if (removed.length > 0) onHook({ repo: name, state: 'removed', url })
  } catch (thrown) {
    onHook({ repo: name, state: 'left', error: toRelayError(thrown) })
  }
}

function nameOf({ owner, repo }: Repo): string {
  return `${owner}/${repo}`
}
