import { RelayError } from '../../base/errors.js'
import { hostSource } from '../../base/source-names.js'
import { suggest } from '../../base/text.js'
import { triggerEvents } from '../../replay/synthesize.js'
import { alternatives, eventMatching, type Filter, type Match, matches } from '../../journal/filter.js'
import { neverSentReason } from '../../senders/events.js'
import { hostEvents } from '../../senders/hosts.js'
import { hasJournal } from '../journal.js'
import type { Profile } from '../profile.js'
import { listSources } from '../sources.js'
import { NAME } from './schemas.js'

// Checks of names before a wait or a list: a misspelt one would be found only when the wait is over, or never.

/**
 * Most wrong letters of an event that is taken for a misspelt one. Of senders other than code hosts relay knows only
 * examples, and real events often differ by two.
 */
const SLIP = 1

/**
 * Checks that such a delivery can come: that its source is one of this relay's, and sends the event. What has come before
 * can come again.
 * @throws RelayError `usage` with the nearest name, or those there are
 */
export async function requireKnownMatch(
  profile: Profile,
  filter: Pick<Filter, 'events' | 'source'>,
): Promise<void> {
  const { provider } = profile.values
  const schemes = await requireKnownSources(profile, filter)
  const { events = [] } = filter
  for (const match of events.flatMap(alternatives)) {
    const why = whyUnknown(match, provider, schemes)
    if (why !== undefined && !(await hasCome(profile, { events: [match] })))
      throw new RelayError(
        'usage',
        `match: ${why}. Nothing was waited for; match: "*" with where waits for what relay does not know`,
        { quotesOutside: ![...schemes.keys()].every((each) => NAME.test(each)) },
      )
  }
}

/**
 * Checks that each source of a filter is one of this relay's, or was.
 * @returns the scheme of each source by its name
 * @throws RelayError `usage` with the nearest name, or those there are
 */
export async function requireKnownSources(
  profile: Profile,
  { events = [], source }: Pick<Filter, 'events' | 'source'>,
): Promise<ReadonlyMap<string, string>> {
  const host = hostSource(profile.values.provider)
  const { all } = await listSources(profile, await profile.data().catch(() => undefined))
  const schemes = new Map([[host, host], ...all.map(({ name, scheme }) => [name, scheme] as const)])
  const named = events
    .flatMap(alternatives)
    .flatMap((match) => (match.text.includes('/') ? eventMatching(match).provider : []))
  for (const name of new Set([...(source === undefined ? [] : [source]), ...named]))
    if (!schemes.has(name) && !(await hasCome(profile, { source: name })))
      throw unknownSource(name, [...schemes.keys()], profile)
  return schemes
}

/** Checks that an example is not one of another source alone. @throws RelayError `usage` that names the source */
export async function requireOwnExample(profile: Profile, event: string): Promise<void> {
  const host = hostSource(profile.values.provider)
  if (event.includes('/') || triggerEvents(host).includes(event)) return
  const { all } = await listSources(profile, await profile.data())
  const other = all.find(({ scheme }) => triggerEvents(scheme).includes(event))
  if (other)
    throw new RelayError('usage', `event: ${event} is of another source${hint(`${other.name}/${event}`)}`, {
      quotesOutside: !NAME.test(other.name),
    })
}

async function hasCome(profile: Profile, filter: Filter): Promise<boolean> {
  if (!hasJournal(profile)) return false
  const journal = await profile.journal()
  for await (const _ of journal.select({ ...filter, last: 1 })) return true
  return false
}

function unknownSource(name: string, names: readonly string[], profile: Profile): RelayError {
  const text = `source: there is no source ${name}${hint(suggest(name, names))}. There are ${names.join(', ')}; ${profile.command(`source add ${name}`)} adds one`
  return new RelayError('usage', text, { quotesOutside: !names.every((each) => NAME.test(each)) })
}

/** Says why no source sends such an event, with the nearest. Undefined if one may. */
function whyUnknown(
  match: Match,
  provider: string,
  schemes: ReadonlyMap<string, string>,
): string | undefined {
  const { text } = match
  const why = neverSentReason(text, provider, hostEvents(provider))
  if (why !== undefined) {
    const other = [...schemes].find(
      ([name, scheme]) => triggerEvents(scheme).includes(text) && name !== provider,
    )
    return other ? `${text} is of another source${hint(`${other[0]}/${text}`)}` : why
  }
  const { provider: name, event } = eventMatching(match)
  const scheme = text.includes('/') ? schemes.get(name) : undefined
  const known = scheme === undefined || name === hostSource(provider) ? [] : triggerEvents(scheme)
  if (known.some((each) => matches(match, { provider: name, event: each, action: null }))) return undefined
  const meant = suggest(event, known, SLIP)
  return meant === undefined
    ? undefined
    : `${name} sends no ${event} that relay knows${hint(`${name}/${meant}`)}`
}

function hint(meant: string | undefined): string {
  return meant === undefined ? '' : ` (did you mean ${meant}?)`
}
