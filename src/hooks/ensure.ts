import { parseUrl } from '../base/parse-url.js'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { HookCalls, HookSettings, RepoHook } from '../providers/hooks.js'
import type { RepoTarget } from '../providers/provider.js'

/** The hook to have, and the user on whose behalf it is made. */
export interface WantedHook {
  readonly token: string
  readonly repo: RepoTarget
  readonly settings: HookSettings
  /** The hook that was made here before, whose address may have changed since. Without an id, any with that address. */
  readonly before?: { readonly id: number | null; readonly url: string } | undefined
  /** Called before a hook is created. */
  readonly onCreate?: (() => Promise<void>) | undefined
}

export interface EnsuredHook {
  readonly hook: RepoHook
  /** Whether there was none with its address. */
  readonly created: boolean
  /** What was wrong with the one that was there, e.g. `it was inactive`; its secret cannot be compared. */
  readonly repaired: readonly string[]
}

/**
 * Makes the repository have exactly one hook with this address, with these settings. A hook with the address is ours, and so is
 * the one that was made before, unless someone gave it another address: it is repaired, and a further one is removed, since
 * its deliveries would arrive twice.
 * @throws RelayError as the calls do: `not_found` also when the token may not manage hooks, `unprocessable` when the code host
 * refuses the address or has too many hooks
 */
export async function ensureHook(
  hooks: HookCalls,
  wanted: WantedHook,
  options?: Cancellable,
): Promise<EnsuredHook> {
  const { token, repo, settings } = wanted
  const [own, ...others] = await findHooks(hooks, wanted, options)
  if (!own) return createHook(hooks, wanted, options)
  for (const { id } of others) await hooks.remove(token, repo, id, options).catch(ignoreGone)
  const hook = await hooks.change(token, repo, own.id, settings, options)
  return { hook, created: false, repaired: differences(own, hook) }
}

/** What identifies the hooks of this relay. */
type Own = Pick<WantedHook, 'before'> & { readonly settings: Pick<HookSettings, 'url'> }

/** The repository's hooks that are ours, the one made before first, otherwise in the code host's order. */
export async function findHooks(
  hooks: HookCalls,
  own: Pick<WantedHook, 'token' | 'repo'> & Own,
  options?: Cancellable,
): Promise<readonly RepoHook[]> {
  const all = await hooks.list(own.token, own.repo, options)
  const ours = all.filter((hook) => isOurs(hook, own))
  const isBefore = ({ id }: RepoHook): boolean => id === own.before?.id
  return [...ours.filter(isBefore), ...ours.filter((hook) => !isBefore(hook))]
}

export function isOurs({ id, url }: Pick<RepoHook, 'id' | 'url'>, { before, settings }: Own): boolean {
  if (sameAddress(url, settings.url)) return true
  return before !== undefined && (before.id ?? id) === id && sameAddress(url, before.url)
}

/** Another relay may have created it since the hooks were listed; the code host then refuses a second one. */
async function createHook(
  hooks: HookCalls,
  wanted: WantedHook,
  options: Cancellable | undefined,
): Promise<EnsuredHook> {
  const { token, repo, settings } = wanted
  await wanted.onCreate?.()
  try {
    return {
      hook: await hooks.create(token, repo, settings, options),
      created: true,
      repaired: [],
    }
  } catch (error) {
    if (!(error instanceof RelayError && error.kind === 'unprocessable')) throw error
    const [own] = await findHooks(hooks, wanted, options)
    if (!own) throw error
    const hook = await hooks.change(token, repo, own.id, settings, options)
    return { hook, created: false, repaired: differences(own, hook) }
  }
}

function differences(before: RepoHook, now: RepoHook): string[] {
  const events = (hook: RepoHook): string => hook.events.toSorted().join(' ')
  return [
    ...(sameAddress(before.url, now.url) ? [] : [`it led to ${before.url}`]),
    ...(before.active ? [] : ['it was inactive']),
    ...(before.contentType === now.contentType ? [] : [`it sent ${before.contentType}`]),
    ...(before.hasSecret === false ? ['it had no secret'] : []),
    ...(events(before) === events(now) ? [] : ['it had other events']),
  ]
}

/** Another relay removed it since the hooks were listed. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof RelayError && error.kind === 'not_found')) throw error
}

/** Whether two texts are one web address. */
export function sameAddress(one: string, other: string): boolean {
  const address = parseUrl(one)?.href
  return address !== undefined && address === parseUrl(other)?.href
}
