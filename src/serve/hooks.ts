import { aborted, sleep } from '../base/abort.js'
import { probeDelay } from '../base/backoff.js'
import { type ErrorKind, type RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import { type CaughtUp, catchUp, LOG_PERIOD_MS, logOf } from '../hooks/catch-up.js'
import {
  type RegisteredHook,
  registerHook,
  unregisterHook,
  type WantedRegistration,
} from '../hooks/registration.js'
import { listSavedHooks, readHook } from '../hooks/saved.js'
import type { RepoTarget } from '../providers/provider.js'
import type { Relay } from '../relay.js'
import type { PayloadAddress } from './payload-address.js'
import { onWake } from './wake.js'

/** Which hooks to have while relay runs. */
export interface HookPlan {
  readonly repos: readonly RepoTarget[]
  /** The user on whose behalf they are made. */
  readonly user: string
  /** Catch up from them, and from those that the profile has besides; and leave them at the end. */
  readonly catchUp: boolean
}

/** What happened to the hook of a repository, `owner/name`. */
export type HookEvent = { readonly repo: string } & (
  | { readonly state: 'ready'; readonly hook: RegisteredHook }
  | { readonly state: 'failed'; readonly error: RelayError; readonly retries: boolean }
  | { readonly state: 'removed'; readonly url: string }
  | { readonly state: 'kept'; readonly url: string }
  | { readonly state: 'left'; readonly error: RelayError }
  | { readonly state: 'missing'; readonly count: number }
  | { readonly state: 'caught up'; readonly result: CaughtUp }
  | { readonly state: 'not caught up'; readonly error: RelayError }
)

export type OnHook = (event: HookEvent) => void

interface HooksOptions {
  readonly address: PayloadAddress
  /** Once it aborts, the profile and its hooks belong to another process. */
  readonly lost: AbortSignal
  /** Whether another relay of the same service takes the hooks over when this one ends. Default: none does. */
  readonly hasSuccessor?: () => Promise<boolean>
  readonly log?: Log
  readonly onHook?: OnHook
}

/** How long ending may take for all hooks together, in milliseconds. */
const END_LIMIT_MS = 5000
/** How often to look whether the user has signed in, in milliseconds: only the profile is read. */
const SIGN_IN_LOOK_MS = 2000

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
  const parts: Parts = { relay, settings, plan, address, log, onHook, stop: stop.signal, cut: cut.signal }
  const running = runAll(parts)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      // A call under way may still make a hook, which then has to go.
      const limit = setTimeout(() => cut.abort(), END_LIMIT_MS)
      const made = await running
      // What is not known is left: what a crash leaves behind is taken over, too.
      const isKept = lost.aborted || ((await hasSuccessor?.().catch(() => true)) ?? false)
      if (!isKept) await Promise.all(made.map((one) => endHook(parts, one)))
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
  if (hook && parts.plan.catchUp) await keepCatchingUp(parts, repo, hook.hook.id)
  else await aborted(parts.stop)
  return own
}

/** Tries until it is made, cannot be made, or relay stops. */
async function makeHook(parts: Parts, { repo, url }: Made): Promise<RegisteredHook | undefined> {
  const { relay, plan, cut, stop, onHook } = parts
  const name = nameOf(repo)
  const { store } = relay.database
  let reported = ''
  for (let failures = 0; !stop.aborted;) {
    try {
      const { accessToken: token } = await relay.owner(plan.user, { signal: cut })
      const wanted = await wantedHook(parts, { repo, url })
      const hook = await registerHook({ ...relay, store }, { token, ...wanted }, { signal: cut })
      onHook({ repo: name, state: 'ready', hook })
      return hook
    } catch (thrown) {
      const error = toRelayError(thrown)
      const delay = delayAfter(error, ++failures)
      if (stop.aborted) break
      if (error.message !== reported)
        onHook({ repo: name, state: 'failed', error, retries: delay !== undefined })
      reported = error.message
      if (delay === undefined) break
      await pause(delay, stop)
    }
  }
  return undefined
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

/** Failures that end by themselves. */
const PASSING: ReadonlySet<ErrorKind> = new Set([
  'provider_failed',
  'provider_timeout',
  'storage',
  'timed_out',
])

/** Milliseconds until the next try; undefined if a person has to change something first. */
function delayAfter({ kind, retryAfter = 60 }: RelayError, failures: number): number | undefined {
  if (kind === 'unauthenticated' || kind === 'invalid_token') return SIGN_IN_LOOK_MS
  if (kind === 'rate_limited') return retryAfter * 1000
  return PASSING.has(kind) ? probeDelay(failures, Math.random) : undefined
}

/** Catches up now, and whenever deliveries may have been missed, until relay stops. */
async function keepCatchingUp(parts: Parts, repo: RepoTarget, hookId: number): Promise<void> {
  const { address, stop } = parts
  let again = new AbortController()
  const missed = (): void => again.abort()
  const ends = [address.onBack(missed), onWake(missed)]
  while (!stop.aborted) {
    await catchUpOnce(parts, repo, hookId)
    await Promise.race([aborted(again.signal), aborted(stop)])
    again = new AbortController()
  }
  for (const end of ends) end()
}

async function catchUpOnce(parts: Parts, repo: RepoTarget, hookId: number): Promise<void> {
  const { relay, plan, stop, log, onHook } = parts
  const name = nameOf(repo)
  try {
    const token = async (): Promise<string> => (await relay.owner(plan.user, { signal: stop })).accessToken
    const result = await catchUp({
      log: logOf(relay.provider, { token, repo }, hookId),
      journal: relay.journal,
      since: Date.now() - LOG_PERIOD_MS,
      signal: stop,
      onMissing: ({ length }) => length > 0 && onHook({ repo: name, state: 'missing', count: length }),
      onWait: (why, ms) =>
        log.info(`catching up with ${name} continues in ${Math.ceil(ms / 1000)} s: ${why}`),
    })
    onHook({ repo: name, state: 'caught up', result })
  } catch (thrown) {
    const error = toRelayError(thrown)
    if (!stop.aborted) onHook({ repo: name, state: 'not caught up', error })
  }
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

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, { signal }).catch(() => {})
}
