import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type ErrorKind, RelayError } from '../base/errors.js'
import { isLoopback, parseUrl } from '../base/address.js'
import type { Store } from '../store/kv.js'
import type { CodeHost, Hooks, HookSettings, Repo, RepoHook } from './host.js'
import { Refusal } from './rest.js'

/** A hook that this profile made or uses. */
export type SavedHook = Readonly<z.infer<typeof schema>>

const schema = z.object({
  owner: z.string(),
  repo: z.string(),
  /** Null: it was about to be created or changed, which can give it another id (Gitea). */
  id: z.int().nullable(),
  url: z.string(),
  /** The address that it had when it was about to be changed. */
  former: z.string().nullable().default(null),
  /** Whether the user chose this address: then it stays when that of the tunnel changes. */
  chosen: z.boolean(),
  /** Null: every event. */
  events: z.array(z.string()).nullable(),
  /** Whether it outlives `relay serve`: made by `relay hook add`, or there before. */
  permanent: z.boolean(),
  /** What the code host showed once it had the settings. Null: it was about to get them. */
  shown: z
    .object({
      events: z.array(z.string()),
      hasSecret: z.boolean(),
      /** Digest of the secret that relay gave it. */
      secret: z.string(),
    })
    .nullable(),
})

/** The hooks of one code host that the profile made or uses, one for each repository: records of its store. */
export class SavedHooks {
  readonly #store: Pick<Store, 'get' | 'list' | 'put' | 'delete'>
  readonly #prefix: string

  constructor(store: Pick<Store, 'get' | 'list' | 'put' | 'delete'>, { origin }: Pick<CodeHost, 'origin'>) {
    this.#store = store
    this.#prefix = `hook:${origin} `.toLowerCase()
  }

  /** Names of repositories have no capitals of their own. */
  #key({ owner, repo }: Repo): string {
    return `${this.#prefix}${owner}/${repo}`.toLowerCase()
  }

  /** @throws RelayError `storage` */
  async get(repo: Repo): Promise<SavedHook | undefined> {
    return schema.safeParse(await this.#store.get(this.#key(repo))).data
  }

  /** By the name of their repository. @throws RelayError `storage` */
  async list(): Promise<readonly SavedHook[]> {
    const keys = await this.#store.list(this.#prefix)
    const records = await Promise.all(keys.map((key) => this.#store.get(key)))
    return records.flatMap((record) => schema.safeParse(record).data ?? [])
  }

  /** @throws RelayError `storage` */
  async put({ owner, repo }: Repo, hook: Omit<SavedHook, 'owner' | 'repo'>): Promise<void> {
    await this.#store.put(this.#key({ owner, repo }), { owner, repo, ...hook })
  }

  /** @throws RelayError `storage` */
  async delete(repo: Repo): Promise<void> {
    await this.#store.delete(this.#key(repo))
  }
}

/** The hooks of a repository as one user may manage them, and what the profile saved about its own. */
export interface HookPlace {
  readonly host: Pick<CodeHost, 'url' | 'words'>
  readonly hooks: Hooks
  readonly saved: SavedHooks
  readonly repo: Repo
}

/** The same to read them only. */
export type ReadPlace = Omit<HookPlace, 'hooks'> & { readonly hooks: Pick<Hooks, 'list'> }

export interface WantedHook {
  readonly settings: HookSettings
  /** Whether it outlives `relay serve`, also if relay serve made it. */
  readonly permanent: boolean
  /** Whether the user chose the address. */
  readonly chosen: boolean
  /** Gives it the settings even if it seems to have them. Default: no. */
  readonly repair?: boolean
}

export interface RegisteredHook {
  readonly hook: RepoHook
  /** Whether there was none with its address. */
  readonly created: boolean
  /** What was wrong with the one that was there, e.g. `it was inactive`; its secret cannot be compared. */
  readonly repaired: readonly string[]
  /** Whether it outlives `relay serve`. */
  readonly permanent: boolean
  /** Whether it was there before, and not made by this profile: perhaps by another relay with the same address. */
  readonly found: boolean
}

/**
 * Makes the repository have exactly one hook with this address and these settings, and saves that it is this profile's. A hook with the
 * address is ours, and so is the one that was made before, unless someone gave it another address. It is left alone if its address,
 * its events and the secret that it was given fit, else changed; a further one is removed, since its deliveries would arrive twice. A
 * hook that was there before is permanent, as is one with `permanent`; what relay made stays as it was.
 * @throws RelayError as the calls do, with the next step; `settings` for an address that the code host cannot reach; `storage`
 */
export async function registerHook(place: HookPlace, wanted: WantedHook): Promise<RegisteredHook> {
  const { host, hooks, saved, repo } = place
  const { settings, permanent, chosen } = wanted
  checkReachable(settings.url, host.url)
  const before = await saved.get(repo)
  const events = settings.events ? [...settings.events] : null
  const common = { url: settings.url, former: null, chosen, events }
  const secret = digestOf(place, settings)
  const change = async (own: RepoHook): Promise<Ensured> => {
    // Somebody may have given it another secret since: a repair does not rely on what was remembered.
    const sameSecret = !wanted.repair && before?.id === own.id && before.shown?.secret === secret
    if (sameSecret && fits(own, before, settings)) return { hook: own, created: false, repaired: [] }
    // Saved first: a hook whose change was interrupted is found by one of its addresses.
    const lasting = permanent || (before?.permanent ?? true)
    await saved.put(repo, { ...common, id: null, former: own.url, permanent: lasting, shown: null })
    const hook = await hooks.change(repo, own.id, settings, { sameSecret })
    return { hook, created: false, repaired: differences(own, hook) }
  }
  const ensure = async (): Promise<Ensured> => {
    const [own, ...others] = ownAmong(await hooks.list(repo), before, settings.url)
    for (const { id } of others) await hooks.remove(repo, id).catch(ignoreGone)
    if (own) return change(own)
    // Saved first: a hook whose creation was interrupted is found by its address.
    const lasting = permanent || before?.permanent === true
    await saved.put(repo, { ...common, id: null, permanent: lasting, shown: null })
    try {
      return { hook: await hooks.create(repo, settings), created: true, repaired: [] }
    } catch (error) {
      // Another relay may have created it since the hooks were listed; GitHub then refuses a second one.
      if (!(error instanceof RelayError && error.kind === 'unprocessable')) throw error
      const [found] = ownAmong(await hooks.list(repo), before, settings.url)
      if (!found) throw error
      return change(found)
    }
  }
  const ensured = await ensure().catch(async (error: unknown) => {
    if (madeNothing(error)) await (before ? saved.put(repo, before) : saved.delete(repo))
    throw explainHookError(error, place)
  })
  const { hook, created } = ensured
  const lasting = permanent || (before ? before.permanent : !created)
  const hasSecret = hook.hasSecret ?? (hook.id === before?.id && before.shown?.hasSecret === true)
  const shown = { events: [...hook.events], hasSecret, secret }
  await saved.put(repo, { ...common, id: hook.id, permanent: lasting, shown })
  return { ...ensured, permanent: lasting, found: !created && !before }
}

type Ensured = Pick<RegisteredHook, 'hook' | 'created' | 'repaired'>

/** Differs between repositories, so that equal secrets do not show. */
function digestOf({ host, repo }: HookPlace, { secret }: HookSettings): string {
  const parts = [host.url, `${repo.owner}/${repo.repo}`.toLowerCase(), secret.reveal()]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

/** Whether a hook still is what relay made of it, and that is what is wanted now. The secret is compared before. */
function fits(own: RepoHook, { shown, events }: SavedHook, settings: HookSettings): boolean {
  return (
    own.active &&
    own.contentType === 'json' &&
    sameAddress(own.url, settings.url) &&
    sameNames(events, settings.events) &&
    sameNames(own.events, shown?.events) &&
    lacksSecret(own, { shown }) !== true &&
    // Somebody gave it another secret since.
    own.lastResponse?.code !== 401
  )
}

/** Whether a hook has lost its secret; undefined if the code host does not show that. */
export function lacksSecret(
  { hasSecret }: Pick<RepoHook, 'hasSecret'>,
  saved: Pick<SavedHook, 'shown'> | undefined,
): boolean | undefined {
  if (hasSecret !== undefined) return !hasSecret
  // It showed one when relay gave it.
  return saved?.shown?.hasSecret ? true : undefined
}

function sameNames(one: readonly string[] | null = null, other: readonly string[] | null = null): boolean {
  return one?.toSorted().join(' ') === other?.toSorted().join(' ')
}

function differences(before: RepoHook, now: RepoHook): string[] {
  return [
    ...(sameAddress(before.url, now.url) ? [] : [`it led to ${before.url}`]),
    ...(before.active ? [] : ['it was inactive']),
    ...(before.contentType === now.contentType ? [] : [`it sent ${before.contentType}`]),
    // What shows the new secret would have shown the old one.
    ...(now.hasSecret && !before.hasSecret ? ['it had no secret'] : []),
    ...(sameNames(before.events, now.events) ? [] : ['it had other events']),
  ]
}

/** The hooks that are ours, the one made before first, otherwise in the code host's order. */
function ownAmong(
  all: readonly RepoHook[],
  before: SavedHook | undefined,
  url: string | undefined,
): readonly RepoHook[] {
  const ours = all.filter((hook) => isOurs(hook, before, url))
  const isBefore = ({ id }: RepoHook): boolean => id === before?.id
  return [...ours.filter(isBefore), ...ours.filter((hook) => !isBefore(hook))]
}

/** Whether a hook leads to `url`, or was made before and still has an address that it was given. */
export function isOurs(
  hook: Pick<RepoHook, 'id' | 'url'>,
  before: SavedHook | undefined,
  url: string | undefined,
): boolean {
  if (url !== undefined && sameAddress(hook.url, url)) return true
  if (!before || (before.id ?? hook.id) !== hook.id) return false
  return [before.url, before.former].some((own) => own !== null && sameAddress(hook.url, own))
}

/** Whether two texts are one web address. */
export function sameAddress(one: string, other: string): boolean {
  const address = parseUrl(one)?.href
  return address !== undefined && address === parseUrl(other)?.href
}

/** Another relay removed it since the hooks were listed. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof RelayError && error.kind === 'not_found')) throw error
}

/** Whether the code host has made nothing, for sure. */
function madeNothing(error: unknown): boolean {
  return error instanceof RelayError && (REFUSALS.has(error.kind) || isMoved(error))
}

const REFUSALS: ReadonlySet<ErrorKind> = new Set(['forbidden', 'not_found', 'rate_limited', 'unprocessable'])

/**
 * Removes the profile's hook of the repository, and those that lead to `url`. Resolves to what was removed.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function unregisterHook(
  place: HookPlace,
  url: string | undefined,
): Promise<readonly RepoHook[]> {
  const { hooks, saved, repo } = place
  const ours = await findOwnHooks(place, url)
  try {
    for (const { id } of ours)
      await hooks.remove(repo, id).catch(async (error: unknown) => {
        ignoreGone(error)
        // Somebody else removed it meanwhile, or the token may see it and not remove it.
        if ((await hooks.list(repo)).some((hook) => hook.id === id)) throw error
      })
    await saved.delete(repo)
    return ours
  } catch (error) {
    throw explainHookError(error, place)
  }
}

/**
 * The repository's hooks that this profile made, or that lead to `url`; the one that it made last is first.
 * @throws RelayError as the calls do, with the next step; `storage`
 */
export async function findOwnHooks(place: ReadPlace, url: string | undefined): Promise<readonly RepoHook[]> {
  const before = await place.saved.get(place.repo)
  try {
    return ownAmong(await place.hooks.list(place.repo), before, url)
  } catch (error) {
    throw explainHookError(error, place)
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

/** The error of a call about a repository's hooks, with what to do about it. Others stay as they are. */
export function explainHookError(
  error: unknown,
  { host, repo }: { readonly host: Pick<CodeHost, 'words'>; readonly repo: Repo },
): unknown {
  if (!(error instanceof RelayError)) return error
  const fix = fixOf(error, host.words.hookRights, repo)
  if (fix === undefined) return error
  const { message, retryAfter } = error
  // A redirect is no failure that ends by itself.
  const kind = isMoved(error) ? 'not_found' : error.kind
  return new RelayError(kind, `${message.replace(/\.$/, '')}. ${fix}`, { retryAfter, cause: error })
}

/** The same for a call about the log of a hook that was seen before: that it is not found is not for want of rights. */
export function explainLogError(
  error: unknown,
  place: { readonly host: Pick<CodeHost, 'words'>; readonly repo: Repo },
): unknown {
  if (!(error instanceof RelayError && error.kind === 'not_found')) return explainHookError(error, place)
  const name = `${place.repo.owner}/${place.repo.repo}`
  return new RelayError(
    'not_found',
    `The delivery log of the hook of ${name} cannot be read: ${error.message}. relay hook list ${name} shows whether the hook is there`,
    { cause: error },
  )
}

/** Whether the code host named another address for the repository, which a write does not follow. */
function isMoved(error: RelayError): boolean {
  return error instanceof Refusal && error.providerStatus >= 300 && error.providerStatus < 400
}

function fixOf(error: RelayError, needed: string, { owner, repo }: Repo): string | undefined {
  const { kind, message, retryAfter } = error
  if (isMoved(error)) return 'The repository was renamed or moved. Give its new name'
  const missing = error instanceof Refusal ? error.missingRight : undefined
  const rights =
    missing === undefined
      ? `Managing hooks needs admin rights on the repository, and a token with ${needed}`
      : `The token needs ${missing}. Sign in with ${needed}: relay login, or relay login --with-token`
  const fixes: Readonly<Partial<Record<ErrorKind, string>>> = {
    invalid_token: 'Sign in again with relay login',
    not_found: `${rights}. Check the name, or sign in as another user`,
    forbidden: fixForbidden(message, owner) ?? rights,
    unprocessable: fixRefused(message, `${owner}/${repo}`),
    rate_limited: `Try again in ${retryAfter ?? 60} s`,
    provider_failed: 'Try again later',
    provider_timeout: 'Try again later',
  }
  return fixes[kind]
}

/** The cases in which the user's rights are not what is missing, by the code hosts' messages. */
function fixForbidden(message: string, owner: string): string | undefined {
  if (/OAuth App access restrictions/i.test(message))
    return `Ask an owner of ${owner} to approve the OAuth app in the organization's settings, under third-party access`
  if (/SAML/.test(message))
    return `Sign in again with relay login, and authorize the app for ${owner} when the code host asks`
  if (/archived/i.test(message)) return 'Unarchive the repository first, or do without its hook'
  if (/disabled by administrator/i.test(message)) return 'Ask the administrator of the code host for webhooks'
  return undefined
}

function fixRefused(message: string, repo: string): string {
  if (/more than \d+ hooks/.test(message)) return `Remove one that is not needed: relay hook list ${repo}`
  if (/reachable over the public Internet|localhost|private/i.test(message))
    return 'Receive through relay serve --tunnel, or give an address that the code host can reach with --url'
  return `See what is there with relay hook list ${repo}`
}
