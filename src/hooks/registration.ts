import type { Cancellable } from '../base/abort.js'
import { type ErrorKind, RelayError } from '../base/errors.js'
import { isLoopback } from '../base/loopback.js'
import type { HookSettings, RepoHook } from '../providers/hooks.js'
import type { Provider, RepoTarget } from '../providers/provider.js'
import type { Store } from '../store/kv.js'
import { type EnsuredHook, ensureHook, findHooks } from './ensure.js'
import { explainHookError, isMoved } from './explain.js'
import { forgetHook, readHook, saveHook } from './saved.js'
import { type AppEvidence, refuseApp } from './through-app.js'

export interface HookParts extends AppEvidence {
  readonly provider: Pick<Provider, 'name' | 'url' | 'origin' | 'hooks'>
  /** Where the profile saves which hooks are its own. */
  readonly store: Pick<Store, 'get' | 'put' | 'delete'>
}

/** A repository, and the user on whose behalf its hooks are managed. */
export interface HookTarget {
  readonly token: string
  readonly repo: RepoTarget
}

export interface WantedRegistration extends HookTarget {
  readonly settings: HookSettings
  /** Whether it outlives `relay serve`, also if relay serve made it. */
  readonly permanent: boolean
  /** Whether the user chose the address. */
  readonly chosen: boolean
}

export interface RegisteredHook extends EnsuredHook {
  /** Whether it outlives `relay serve`. */
  readonly permanent: boolean
  /** Whether it was there before, and not made by this profile: perhaps by another relay with the same address. */
  readonly found: boolean
}

/**
 * Makes the repository have one hook with these settings, and saves that it is this profile's. A hook that was there before is
 * permanent, as is one with `permanent`; what relay made stays as it was.
 * @throws RelayError as the calls do, with the next step; `settings` for an address that the code host cannot reach; `conflict`
 * when an App sends the repository's deliveries; `storage`
 */
export async function registerHook(
  parts: HookParts,
  { token, repo, settings, permanent, chosen }: WantedRegistration,
  options?: Cancellable,
): Promise<RegisteredHook> {
  const { provider, store } = parts
  checkReachable(settings.url, provider.url)
  const saved = await readHook(store, provider, repo)
  await refuseApp(parts, repo, { ...options, hasHook: saved !== undefined })
  const save = (id: number | null, lasting: boolean): Promise<void> =>
    saveHook(store, provider, repo, {
      id,
      url: settings.url,
      chosen,
      events: settings.events ? [...settings.events] : null,
      permanent: lasting,
    })
  // Saved first: a hook whose creation was interrupted is found by its address.
  const onCreate = (): Promise<void> => save(null, permanent || saved?.permanent === true)
  const ensured = await ensureHook(
    provider.hooks,
    { token, repo, settings, before: saved, onCreate },
    options,
  ).catch(async (error: unknown) => {
    if (!saved && isRefusal(error)) await forgetHook(store, provider, repo)
    throw explainHookError(error, provider, repo)
  })
  const lasting = permanent || (saved ? saved.permanent : !ensured.created)
  await save(ensured.hook.id, lasting)
  return { ...ensured, permanent: lasting, found: !ensured.created && !saved }
}

/** Whether the code host has made nothing, for sure. */
function isRefusal(error: unknown): boolean {
  return error instanceof RelayError && (REFUSALS.has(error.kind) || isMoved(error))
}

const REFUSALS: ReadonlySet<ErrorKind> = new Set(['forbidden', 'not_found', 'rate_limited', 'unprocessable'])

/**
 * Removes the profile's hook of the repository, and those that lead to `url`. Resolves to what was removed.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function unregisterHook(
  { provider, store }: Pick<HookParts, 'provider' | 'store'>,
  { token, repo, url }: HookTarget & { readonly url: string | undefined },
  options?: Cancellable,
): Promise<readonly RepoHook[]> {
  const ours = await findOwnHooks({ provider, store }, { token, repo, url }, options)
  try {
    for (const { id } of ours) await removeHook(provider, { token, repo }, id, options)
    await forgetHook(store, provider, repo)
    return ours
  } catch (error) {
    throw explainHookError(error, provider, repo)
  }
}

/** A 404 is a hook that somebody else removed meanwhile, or a token that may see it and not remove it. */
async function removeHook(
  { hooks }: Pick<Provider, 'hooks'>,
  { token, repo }: HookTarget,
  id: number,
  options?: Cancellable,
): Promise<void> {
  try {
    await hooks.remove(token, repo, id, options)
  } catch (error) {
    if (!(error instanceof RelayError && error.kind === 'not_found')) throw error
    if ((await hooks.list(token, repo, options)).some((hook) => hook.id === id)) throw error
  }
}

/**
 * The repository's hooks that this profile made, or that lead to `url`; the one that it made last is first.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function findOwnHooks(
  { provider, store }: Pick<HookParts, 'provider' | 'store'>,
  { token, repo, url }: HookTarget & { readonly url: string | undefined },
  options?: Cancellable,
): Promise<readonly RepoHook[]> {
  const before = await readHook(store, provider, repo)
  const own = { token, repo, before, settings: { url: url ?? before?.url ?? '' } }
  try {
    return await findHooks(provider.hooks, own, options)
  } catch (error) {
    throw explainHookError(error, provider, repo)
  }
}

/** @throws RelayError `settings` for an address on this machine, when the code host is elsewhere. */
export function checkReachable(url: string, host: string): void {
  if (!isLoopback(new URL(url).hostname) || isLoopback(new URL(host).hostname)) return
  throw new RelayError(
    'settings',
    `${host} cannot reach ${url}, an address of this machine alone. Receive through relay serve --tunnel, or set --public-url to an address that it can reach`,
  )
}
