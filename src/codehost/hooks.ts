import { createHash } from 'node:crypto'
import { type ErrorKind, RelayError, toRelayError } from '../base/errors.js'
import { sleep } from '../base/wait.js'
import { isLoopback, parseUrl } from '../base/address.js'
import type { Store } from '../store/kv.js'
import { nearestMatch } from '../senders/events.js'
import type { CodeHost, RepoHooks, HookSettings, Repo, RepoHook } from './host.js'
import { isNotFound, Refusal } from './refusal.js'

/** A hook that this profile made or uses. */
export interface SavedHook extends Repo {
  /** Id of the hook. Null while it is being created or changed, which can give it another id (Gitea). */
  readonly id: number | null
  readonly url: string
  /** Address of the hook before a pending change. */
  readonly former: string | null
  /** True if the user chose this address, so that it does not follow the tunnel's. */
  readonly chosen: boolean
  /** Events of the hook. Null: every event. */
  readonly events: readonly string[] | null
  /** True if the hook outlives `relay serve`: made by `relay hook add`, or there before. */
  readonly permanent: boolean
  /**
   * The code host's view of the hook after the last change; `secret` is a digest of the secret that relay set. Null
   * while a change is pending.
   */
  readonly shown: {
    readonly events: readonly string[]
    readonly hasSecret: boolean
    readonly secret: string
  } | null
}

/**
 * Hooks of one code host that the profile made or uses, one for each repository. All methods reject with RelayError
 * `storage`.
 */
export class SavedHooks {
  readonly #store: Store
  readonly #prefix: string

  constructor(store: Store, { origin }: { readonly origin: string }) {
    this.#store = store
    this.#prefix = `hook:${origin} `.toLowerCase()
  }

  /** Repository names are case-insensitive. */
  #key({ owner, repo }: Repo): string {
    return `${this.#prefix}${owner}/${repo}`.toLowerCase()
  }

  get(repo: Repo): Promise<SavedHook | undefined> {
    return this.#store.get<SavedHook>(this.#key(repo))
  }

  /** Lists the hooks, sorted by the names of their repositories. */
  async list(): Promise<readonly SavedHook[]> {
    const keys = await this.#store.list(this.#prefix)
    const records = await Promise.all(keys.map((key) => this.#store.get<SavedHook>(key)))
    return records.flatMap((record) => record ?? [])
  }

  put({ owner, repo }: Repo, hook: Omit<SavedHook, 'owner' | 'repo'>): Promise<void> {
    return this.#store.put(this.#key({ owner, repo }), { owner, repo, ...hook })
  }

  delete(repo: Repo): Promise<unknown> {
    return this.#store.delete(this.#key(repo))
  }
}

/** Parses names of events, separated by commas. `place` begins the error. @throws RelayError `usage` */
export function parseHookEvents(place: string, text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.every((name) => /^[a-z_]{1,64}$/.test(name))) return [...new Set(names)]
  throw new RelayError('usage', `${place}: must be names of events, separated by commas: push,pull_request`)
}

/** A repository's hooks as one user may manage them, with the profile's records of its own. */
export interface HookContext {
  readonly host: Pick<CodeHost, 'url' | 'words' | 'testEvent' | 'webhook' | 'hookEvents'>
  readonly hooks: RepoHooks
  readonly saved: SavedHooks
  readonly repo: Repo
  /** Command with which the user signs in. */
  readonly login: string
  /** Formats a command line of relay for the profile, for messages. */
  readonly command: (line: string) => string
}

type Explained = Pick<HookContext, 'host' | 'repo' | 'login' | 'command'>

export interface WantedHook {
  readonly settings: HookSettings
  /**
   * True if the user asked for the hook. It then outlives `relay serve`, and gets the settings even if it seems to have
   * them.
   */
  readonly permanent: boolean
  /** True if the user chose the address. */
  readonly chosen: boolean
}

export interface RegisteredHook {
  readonly hook: RepoHook
  /** True if no hook had its address. */
  readonly created: boolean
  /** Corrected settings of an existing hook, e.g. `it was inactive`. Its secret cannot be compared. */
  readonly repaired: readonly string[]
  /** True if the hook outlives `relay serve`. */
  readonly permanent: boolean
  /** True if the hook existed and was not made by this profile, but perhaps by another relay with the same address. */
  readonly found: boolean
  /** Ids of hooks that it replaces, for {@link removeFormer}. */
  readonly former: readonly number[]
  /** True if hooks that it replaces have another secret, as far as the profile knows. */
  readonly hasNewSecret: boolean
}

/**
 * Ensures that the repository has exactly one hook with this address and these settings, and saves it as this
 * profile's. The profile's hooks are those with the address, and the one that it made before, unless someone changed
 * its address. A hook whose address, events and secret are right is left alone, otherwise it is changed. Further hooks
 * get nothing more, since their deliveries would arrive twice, and are left to {@link removeFormer} where that loses what is
 * queued for them. A hook that existed before is permanent, as is one with
 * `permanent`; for one made by relay, that does not change.
 * @throws RelayError as the calls do, with the next step; `settings` for an address that the code host cannot reach; `usage`
 * for events that its hooks do not have; `storage`
 */
export async function registerHook(place: HookContext, wanted: WantedHook): Promise<RegisteredHook> {
  const { host, hooks, saved, repo } = place
  const { settings, permanent, chosen } = wanted
  const { url, events = null } = settings
  checkEvents(events ?? [], host)
  checkReachable(url, host.url, place.command)
  const before = await saved.get(repo)
  const secret = digestOf(place, settings)
  const lasts = (created: boolean): boolean => permanent || (before?.permanent ?? !created)
  const save = (created: boolean, hook: Pick<SavedHook, 'id' | 'former' | 'shown'>): Promise<void> =>
    saved.put(repo, { ...hook, url, chosen, events, permanent: lasts(created) })
  const former: number[] = []
  const drop = async (id: number): Promise<void> => {
    if (hooks.retire) former.push(id)
    const dropped = hooks.retire ? hooks.retire(repo, id, url) : hooks.remove(repo, id)
    await dropped.catch(ignoreGone)
  }
  const change = async (own: RepoHook): Promise<Ensured> => {
    // Somebody may have changed its secret since, so a user's request does not rely on the record.
    const sameSecret = !permanent && before?.id === own.id && before.shown?.secret === secret
    if (sameSecret && fits(own, before, settings)) return { hook: own, created: false, repaired: [] }
    // Saved first, so that a hook whose change was interrupted is found by one of its addresses.
    await save(false, { id: null, former: own.url, shown: null })
    const hook = await hooks.change(repo, own.id, settings, { sameSecret })
    if (hook.id !== own.id) await onceMade(() => drop(own.id))
    return { hook, created: false, repaired: differences(own, hook, host) }
  }
  const ensure = async (): Promise<Ensured> => {
    const [own, ...others] = ownAmong(await hooks.list(repo), before, url)
    for (const { id } of others) await drop(id)
    if (own) return change(own)
    // Saved first, so that a hook whose creation was interrupted is found by its address.
    await save(true, { id: null, former: null, shown: null })
    try {
      return { hook: await hooks.create(repo, settings), created: true, repaired: [] }
    } catch (error) {
      // Another relay may have created it since the hooks were listed. GitHub then refuses a second one.
      if (!(error instanceof RelayError && error.kind === 'unprocessable')) throw error
      const [found] = ownAmong(await hooks.list(repo), before, url)
      if (!found) throw error
      return change(found)
    }
  }
  const ensured = await ensure().catch(async (error: unknown) => {
    const madeNothing = error instanceof RelayError && (REFUSALS.has(error.kind) || isMoved(error))
    if (madeNothing) await (before ? saved.put(repo, before) : saved.delete(repo))
    throw explainHookError(error, place)
  })
  const { hook, created } = ensured
  const hasSecret = hook.hasSecret ?? (hook.id === before?.id && before.shown?.hasSecret === true)
  const shown = { events: hook.events, hasSecret, secret }
  await save(created, { id: hook.id, former: null, shown })
  const hasNewSecret = Boolean(before?.shown) && before?.shown?.secret !== secret
  return { ...ensured, permanent: lasts(created), found: !created && !before, former, hasNewSecret }
}

/**
 * Says that hooks were replaced, and for how long they stay. `acceptsFormer` is true if relay also accepts the secret that
 * they had.
 */
export function formerText(
  { host, repo: { owner, repo } }: HookContext,
  { former, hasNewSecret }: RegisteredHook,
  { after, acceptsFormer }: { readonly after: number; readonly acceptsFormer: boolean },
): string {
  const one = former.length === 1
  const which = `hook${one ? '' : 's'} ${former.join(' and ')} of ${owner}/${repo}`
  const refused =
    hasNewSecret && !acceptsFormer
      ? ', and is refused unless RELAY_WEBHOOK_SECRET_PREVIOUS has the former secret'
      : ''
  return `${which} ${one ? 'was' : 'were'} replaced, since ${host.words.label} cannot change a secret. What is queued there still comes for ${after / 1000} s${refused}`
}

/**
 * Removes the hooks that another one replaced, once what the code host had queued for them has had its time, at once when
 * `stop` aborts.
 * @throws RelayError as the calls do, with the next step
 */
export async function removeFormer(
  place: HookContext,
  ids: readonly number[],
  { after, stop }: { readonly after: number; readonly stop: AbortSignal },
): Promise<void> {
  if (ids.length === 0) return
  await sleep(after, { signal: stop }).catch(() => {})
  try {
    for (const id of ids) await place.hooks.remove(place.repo, id).catch(ignoreGone)
  } catch (error) {
    throw explainHookError(error, place)
  }
}

type Ensured = Pick<RegisteredHook, 'hook' | 'created' | 'repaired'>

/** Error kinds after which the code host has certainly created nothing. */
const REFUSALS: ReadonlySet<ErrorKind> = new Set(['forbidden', 'not_found', 'rate_limited', 'unprocessable'])

/** Digest of a secret that differs between repositories, so that equal secrets cannot be recognized. */
function digestOf({ host, repo }: HookContext, { secret }: HookSettings): string {
  const parts = [host.url, `${repo.owner}/${repo.repo}`.toLowerCase(), secret.reveal()]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

/** True if a hook still is as relay configured it, and has the wanted settings. The secret is compared separately. */
function fits(own: RepoHook, { shown, events }: SavedHook, settings: HookSettings): boolean {
  return (
    own.active &&
    own.contentType === 'json' &&
    sameAddress(own.url, settings.url) &&
    sameNames(events, settings.events) &&
    sameNames(own.events, shown?.events) &&
    !hookLacksSecret(own, { shown }) &&
    // A 401 shows that somebody changed the secret.
    own.lastResponse?.code !== 401
  )
}

/** True if a hook has lost its secret, as far as the code host shows it. */
export function hookLacksSecret(
  { hasSecret }: { readonly hasSecret: boolean | undefined },
  saved: { readonly shown: SavedHook['shown'] } | undefined,
): boolean {
  // The code host did show one when relay set it.
  return hasSecret === undefined ? saved?.shown?.hasSecret === true : !hasSecret
}

function sameNames(one: readonly string[] | null = null, other: readonly string[] | null = null): boolean {
  return one?.toSorted().join(' ') === other?.toSorted().join(' ')
}

function differences(before: RepoHook, now: RepoHook, host: HookContext['host']): string[] {
  return [
    ...(sameAddress(before.url, now.url) ? [] : [`it led to ${before.url}`]),
    ...(before.active || now.paused ? [] : [inactiveText(before, host)]),
    ...(before.contentType === now.contentType ? [] : [`it sent ${before.contentType}`]),
    // A code host that shows the new secret would have shown the old one.
    ...(now.hasSecret && !before.hasSecret ? ['it had no secret'] : []),
    ...(sameNames(before.events, now.events) ? [] : ['it had other events']),
    ...(now.lost === undefined ? [] : [now.lost]),
  ]
}

function inactiveText({ paused }: RepoHook, host: Pick<CodeHost, 'words' | 'testEvent'>): string {
  return paused ? wokenText(host) : 'it was inactive'
}

/** Says what has ended the pause of a hook: a clause. */
export function wokenText({ words, testEvent }: Pick<CodeHost, 'words' | 'testEvent'>): string {
  return `${words.label} had paused it, and sends again after a test, a ${testEvent} of the last commits`
}

/** @throws RelayError `usage` for events that no hook of the code host has, with the nearest one and all that there are */
export function checkEvents(
  events: readonly string[],
  { words: { label }, webhook, hookEvents }: Pick<CodeHost, 'words' | 'webhook' | 'hookEvents'>,
): void {
  const unknown = events.find((event) => hookEvents?.includes(event) === false)
  if (unknown === undefined) return
  const meant = nearestMatch(unknown, webhook.events)
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  throw new RelayError(
    'usage',
    `Hooks of ${label} have no event ${unknown}.${hint} They have ${hookEvents?.join(', ')}`,
  )
}

/** Selects the profile's own hooks, the one made before first, otherwise in the code host's order. */
function ownAmong(
  all: readonly RepoHook[],
  before: SavedHook | undefined,
  url: string | undefined,
): readonly RepoHook[] {
  const order = ({ id }: RepoHook): number => (id === before?.id ? 0 : 1)
  return all
    .filter((hook) => isOwnHook(hook, before, url))
    .toSorted((one, other) => order(one) - order(other))
}

/** True if a hook leads to `url`, or was made before and still has an address that relay set. */
export function isOwnHook(hook: RepoHook, before: SavedHook | undefined, url: string | undefined): boolean {
  if (url !== undefined && sameAddress(hook.url, url)) return true
  if (!before || (before.id ?? hook.id) !== hook.id) return false
  return [before.url, before.former].some((own) => own !== null && sameAddress(hook.url, own))
}

/** True if two texts are the same web address. */
export function sameAddress(one: string, other: string): boolean {
  const address = parseUrl(one)?.href
  return address !== undefined && address === parseUrl(other)?.href
}

/** Ignores that another relay removed the hook since they were listed. */
export function ignoreGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error
}

/**
 * Runs work after a hook was made. A refusal must not look as if there were no hook. @throws RelayError
 * `provider_failed`, `cancelled`
 */
export async function onceMade<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const { kind, message } = toRelayError(cause)
    throw kind === 'cancelled' ? cause : new RelayError('provider_failed', message, { cause })
  }
}

/**
 * Removes the profile's hook of the repository, and those that lead to `url`. Returns the removed hooks.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function unregisterHook(
  place: HookContext,
  url: string | undefined,
): Promise<readonly RepoHook[]> {
  const { hooks, saved, repo } = place
  const ours = await findOwnHooks(place, url)
  try {
    for (const { id } of ours)
      await hooks.remove(repo, id).catch(async (error: unknown) => {
        ignoreGone(error)
        // 404 means that another client removed it, or that the token can read but not remove it.
        if ((await hooks.list(repo)).some((hook) => hook.id === id)) throw error
      })
    await saved.delete(repo)
    return ours
  } catch (error) {
    throw explainHookError(error, place)
  }
}

/**
 * Finds the repository's hooks that this profile made, or that lead to `url`. The one that it made last is first.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function findOwnHooks(
  place: HookContext,
  url: string | undefined,
): Promise<readonly RepoHook[]> {
  const before = await place.saved.get(place.repo)
  try {
    return ownAmong(await place.hooks.list(place.repo), before, url)
  } catch (error) {
    throw explainHookError(error, place)
  }
}

/** @throws RelayError `settings` for an address on this machine, when the code host is elsewhere */
export function checkReachable(url: string, host: string, command: HookContext['command']): void {
  if (!isLoopback(new URL(url).hostname) || isLoopback(new URL(host).hostname)) return
  throw new RelayError(
    'settings',
    `${host} cannot reach ${url}, an address of this machine alone. Receive through ${command('serve --tunnel')}, or set --public-url to an address that it can reach`,
  )
}

/** Adds advice to an error of a call about a repository's hooks. Other errors are returned unchanged. */
export function explainHookError(error: unknown, place: Explained): unknown {
  const fix = error instanceof RelayError ? fixOf(error, place) : undefined
  if (!(error instanceof RelayError) || fix === undefined) return error
  const { message, retryAfter } = error
  // A redirect is not a temporary failure.
  const kind = isMoved(error) ? 'not_found' : error.kind
  return new RelayError(kind, `${message.replace(/\.$/, '')}. ${fix}`, { retryAfter, cause: error })
}

/**
 * Adds advice to an error of a call about the log of a known hook, for which "not found" does not mean missing rights.
 */
export function explainLogError(error: unknown, place: Explained): unknown {
  if (!(error instanceof RelayError && isNotFound(error))) return explainHookError(error, place)
  const name = `${place.repo.owner}/${place.repo.repo}`
  return new RelayError(
    'not_found',
    `The delivery log of the hook of ${name} cannot be read: ${error.message}. ${place.command(`hook list ${name}`)} shows whether the hook is there`,
    { cause: error },
  )
}

/** True if the code host redirected to the repository's new address, which a write does not follow. */
function isMoved(error: RelayError): boolean {
  return error instanceof Refusal && error.providerStatus >= 300 && error.providerStatus < 400
}

function fixOf(error: RelayError, { host, repo: { owner, repo }, login, command }: Explained) {
  if (isMoved(error)) return 'The repository was renamed or moved. Give its new name'
  // The message names the page.
  if (error instanceof Refusal && error.signOn !== undefined) return undefined
  const { kind, message, retryAfter = 60 } = error
  const { hookScopes, hookRole } = host.words
  const missing = error instanceof Refusal ? error.missingRight : undefined
  const rights =
    missing === undefined
      ? `Managing hooks needs ${hookRole}, and a token with ${hookScopes}`
      : `The token needs ${missing}. Sign in with ${hookScopes}: ${login}, or ${login} --with-token`
  const fixes: Readonly<Partial<Record<ErrorKind, string>>> = {
    invalid_token: `Sign in again with ${login}`,
    not_found: `${rights}. Check the name, or sign in as another user`,
    forbidden: fixForbidden(message, owner, login) ?? rights,
    unprocessable: fixRefused(message, `${owner}/${repo}`, command),
    rate_limited: `Try again in ${retryAfter} s`,
    provider_failed: 'Try again later',
    provider_timeout: 'Try again later',
  }
  return fixes[kind]
}

/** Advice for refusals that are not about the user's rights, by the code hosts' messages. */
function fixForbidden(message: string, owner: string, login: string): string | undefined {
  if (/OAuth App access restrictions/i.test(message))
    return `Ask an owner of ${owner} to approve the OAuth app in the organization's settings, under third-party access`
  if (/SAML/.test(message))
    return `Sign in again with ${login}, and authorize the app for ${owner} when the code host asks`
  if (/archived/i.test(message)) return 'Unarchive the repository first, or do without its hook'
  if (/disabled by administrator/i.test(message)) return 'Ask the administrator of the code host for webhooks'
  return undefined
}

function fixRefused(message: string, repo: string, command: HookContext['command']): string {
  if (/more than \d+ hooks/.test(message))
    return `Remove one that is not needed: ${command(`hook list ${repo}`)}`
  if (/reachable over the public Internet|localhost|private/i.test(message))
    return `Receive through ${command('serve --tunnel')}, or give an address that the code host can reach with --url`
  return `See what is there with ${command(`hook list ${repo}`)}`
}
