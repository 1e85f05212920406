import { hostSource, shownSource } from '../base/source-names.js'
import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { didYouMean } from '../base/text.js'
import { labelOf, type NamedTarget, publicTargets, publicTargetId, shortNames } from '../dispatch/routes.js'
import { Routing } from '../dispatch/routing.js'
import type { InstanceStatus } from '../instance/protocol.js'
import { findInstances } from '../instance/running.js'
import { type Filter, type FilterText, parseFilter } from '../journal/filter.js'
import { Journal } from '../journal/journal.js'
import type { Entry, Forward, Summary } from '../journal/types.js'
import { mayHaveData } from '../store/open.js'
import type { Shell } from './command.js'
import { wakeups } from './follow.js'
import { own } from './output/outside.js'
import type { Profile } from './profile.js'
import { routeSettings, storeOf } from './settings/derived.js'

/** True if the profile has a journal, as far as known without a server, or can never have one. */
export function hasJournal({ values, folder }: Profile): boolean {
  return values.store === 'memory' || mayHaveData(storeOf(values), folder)
}

/**
 * Waits until the profile has a journal, which its first instance creates. Returns false if it has none after `limit`
 * milliseconds. @throws AbortError when the signal of the shell aborts
 */
export async function awaitJournal(shell: Shell, profile: Profile, limit?: number): Promise<boolean> {
  if (hasJournal(profile)) return true
  for await (const _ of wakeups(shell, profile, limit === undefined ? {} : { limit }))
    if (hasJournal(profile)) return true
  return false
}

/** True if a word names an entry of the journal: `7`, `#7` or `last`. */
export function isEntry(word: string): boolean {
  return /^(?:#?[1-9]\d{0,14}|last)$/.test(word)
}

/** Parses the number of an entry, or `last`. @throws RelayError `usage` */
export function parseEntry(word: string): string {
  if (isEntry(word)) return word.replace('#', '')
  throw new RelayError('usage', `${JSON.stringify(word)} is not an entry. Give its number, or last`)
}

/** Finds an entry. @throws RelayError as {@link parseEntry}; `no_match` that names the existing numbers */
export async function findEntry(journal: Journal, word: string): Promise<Entry> {
  const named = parseEntry(word)
  const n = named === 'last' ? await journal.newest() : Number(named)
  const entry = await journal.read(n)
  if (entry) return entry
  const [oldest] = await journal.after(0, 1)
  throw new RelayError(
    'no_match',
    oldest
      ? `The journal has no entry #${n}. Its entries are #${oldest.n} to #${await journal.newest()}`
      : 'The journal is empty',
  )
}

/** Flags that select entries. */
export interface FilterFlags extends FilterText {
  /** Short form of `--status failed`. */
  readonly failed?: boolean
  readonly last?: string | undefined
}

export function readFilter({ failed, last, ...flags }: FilterFlags, now: number): Filter {
  if (failed && flags.status !== undefined && flags.status !== 'failed')
    throw new RelayError('usage', '--failed: contradicts --status')
  if (last !== undefined && !/^\d{1,9}$/.test(last))
    throw new RelayError('usage', '--last: must be a whole number')
  return {
    ...parseFilter({ ...flags, ...(failed && { status: 'failed' }) }, now, (part) => `--${part}`),
    ...(last !== undefined && { last: Number(last) }),
  }
}

/** Warns of matches that can never match, and of an unknown source, with suggestions. */
export async function warnOfMatches(
  { out }: Shell,
  profile: Profile,
  { events: matches = [], source }: Filter,
): Promise<void> {
  const { provider } = profile.values
  const ofMatches = matches.flatMap(({ text }) => /^([^/]+)\//.exec(text)?.[1] ?? [])
  for (const name of new Set([source, ...ofMatches])) {
    if (name === undefined || name === hostSource(provider)) continue
    const { sourceNames } = await import('./sources.js')
    const data = await profile.data().catch(() => undefined)
    // A suggestion is no reason to fail.
    const names = await sourceNames(profile, data).catch((): readonly string[] => [])
    const meant = names.includes(name) ? '' : didYouMean(name, names)
    const flag = name === source ? '--source: ' : ''
    // The journal may have a source that is no longer set.
    if (meant !== '' || shownSource(name) === undefined)
      out.log.warn(`${flag}there is no source ${name}${meant}`)
  }
  if (matches.length === 0) return
  // Loaded late, since most lists have no match.
  const [{ hostEvents }, { neverSentReason }] = await Promise.all([
    import('../senders/hosts.js'),
    import('../senders/events.js'),
  ])
  const events = hostEvents(provider)
  for (const { text } of matches) {
    const why = neverSentReason(text, provider, events)
    if (why !== undefined) out.warn(own(why))
  }
}

/** Entries read at once, to bound the memory for a burst. */
const MAX_BATCH = 1000

/**
 * Yields the entries after number `after` whose body has the filter's text, in order: existing ones, then those that
 * any process appends. Each wakeup yields a batch, which may be empty. Ends with the wakeups.
 */
export async function* entriesAfter(
  journal: Journal,
  after: number,
  { text }: Filter,
  wakeups: AsyncIterable<unknown>,
): AsyncGenerator<readonly Summary[], void> {
  let last = after
  for await (const _ of wakeups)
    for (let isWhole = false; !isWhole;) {
      const batch = await journal.after(last, MAX_BATCH)
      isWhole = batch.length < MAX_BATCH
      last = batch.at(-1)?.n ?? last
      const numbers = batch.map(({ n }) => n)
      const found = text === undefined ? new Set(numbers) : await journal.withText(numbers, text)
      yield batch.filter(({ n }) => found.has(n))
    }
}

/**
 * Returns a function that is true for a target to which an instance forwards. Without an instance it is always true,
 * since flags may name any target.
 */
export function forwardedBy(instance: InstanceStatus | undefined): (id: string) => boolean {
  const known = instance && new Set(instance.targets.map(({ id }) => id))
  return (id) => known?.has(publicTargetId(id)) ?? true
}

/**
 * Returns the current instance of the profile, since its routes may have changed. If it does not respond, its last
 * known state.
 */
async function instanceNow(profile: Profile, { signal }: Cancellable): Promise<Profile['instance']> {
  const { values, name, instance } = profile
  return (await findInstances(values.home, { signal, profile: name })).running[0] ?? instance
}

/**
 * Returns the new summary once forwarding has succeeded or failed at each target. Undefined if that takes longer than
 * `limit` milliseconds.
 */
export async function awaitForwarded(
  shell: Shell,
  journal: Journal,
  entry: Summary,
  { profile, limit }: { readonly profile: Profile; readonly limit: number },
): Promise<Summary | undefined> {
  let isForwarded = forwardedBy(await instanceNow(profile, shell))
  for await (const { status } of wakeups(shell, profile, { limit })) {
    if (status) isForwarded = await status().then(forwardedBy, () => isForwarded)
    const [last] = await journal.summaries([entry.n])
    const waits = ([id, forward]: [string, Forward]): boolean =>
      forward.status === 'waiting' && isForwarded(id)
    if (!Object.entries((last ?? entry).forwards).some(waits)) return last ?? entry
  }
  return undefined
}

const MAX_NAMED = 10

/**
 * Warns of failures at targets that are no longer configured. @throws RelayError `target_failed` that names the others
 */
export async function checkForwarded(
  { out, signal }: Shell,
  profile: Profile,
  summaries: readonly Summary[],
): Promise<void> {
  const names = shortNames(await knownTargets(profile, await profile.journal()))
  const isForwarded = forwardedBy(await instanceNow(profile, { signal }))
  const failures = (isNow: boolean): string | undefined => {
    const found = summaries.flatMap(({ n, forwards }) => {
      const ids = Object.keys(forwards).filter(
        (id) => forwards[id]?.status === 'failed' && isForwarded(id) === isNow,
      )
      return ids.length === 0
        ? []
        : `#${n} at ${ids.map((id) => names.get(publicTargetId(id)) ?? labelOf(id)).join(' and ')}`
    })
    const named = found.length > MAX_NAMED ? [...found.slice(0, MAX_NAMED), '…'] : found
    const what = isNow ? 'at a target' : 'earlier, at a target that is no longer configured'
    if (found.length === 0) return undefined
    return `${found.length} of ${summaries.length} failed ${what}: ${named.join(', ')}`
  }
  const [earlier, failed] = [failures(false), failures(true)]
  if (earlier !== undefined) out.log.warn(earlier)
  if (failed !== undefined)
    throw new RelayError('target_failed', `${failed}. See ${profile.command('show <n>')}`)
}

/**
 * Lists the configured targets, with their names in the instance, which may come from its flags, else in the settings.
 */
export function namedTargets(profile: Profile): readonly NamedTarget[] {
  return profile.instance?.targets ?? targetsOfSettings(profile)
}

/** Lists the targets of the settings, flags included, whatever the instance has. */
export function targetsOfSettings(profile: Profile): readonly NamedTarget[] {
  return publicTargets(new Routing(routeSettings(profile)))
}

/** The same, with the names that other targets had when they were last configured. @throws RelayError `storage` */
export async function knownTargets(profile: Profile, journal: Journal): Promise<readonly NamedTarget[]> {
  const current = namedTargets(profile)
  const former = (await journal.targetNames()).map((each) => ({ ...each, id: publicTargetId(each.id) }))
  const isFree = ({ id, name }: NamedTarget): boolean =>
    current.every((each) => each.id !== id && each.name !== name)
  return [...current, ...former.filter(isFree)]
}
