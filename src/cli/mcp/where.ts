import { RelayError } from '../../base/errors.js'
import { type Condition, DeliveryView, parseCondition } from '../../dispatch/where.js'
import { isFormBody } from '../../http/forms.js'
import type { Filter } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import { lackingPaths, readPath } from '../../replay/edit.js'
import { hasJournal, readFilter } from '../journal.js'
import { openProfile } from '../profile.js'
import type { Call } from './tool.js'

/** Newest deliveries whose payloads are looked at. */
const SAMPLES = 20

/**
 * Checks the paths of conditions against stored payloads. A path that none of them has is an error, unless the condition
 * holds without it. A wait would otherwise show the mistake only at its time limit.
 * @throws RelayError `usage` with the nearest path
 */
export async function requireKnownPaths(
  journal: Journal,
  { events, source, repo }: Filter,
  conditions: readonly Condition[],
): Promise<void> {
  const nothing = new DeliveryView({ body: Buffer.from('{}'), repo: null, provider: '' })
  const asked = conditions.filter(({ text, holds }) => !text.startsWith('@') && !holds(nothing))
  if (asked.length === 0) return
  const bodies: Uint8Array[] = []
  const like = { ...(events && { events }), ...(source !== undefined && { source }) }
  for await (const { n } of journal.select({ ...like, ...(repo !== undefined && { repo }), last: SAMPLES })) {
    const entry = await journal.read(n)
    if (entry) bodies.push(entry.body)
  }
  if (bodies.length === 0) return
  for (const { text } of asked) {
    const [written = ''] = /^[^=!~\s]+/.exec(text) ?? []
    const path = readPath(written)
    if (!path) continue
    const lacking = bodies.map((body) => {
      const [found] = lackingPaths(body, [{ path, value: null }], { form: isFormBody(body) })
      return found
    })
    const nearest = lacking.find((each) => each?.nearest !== undefined)?.nearest
    if (lacking.every(Boolean) && nearest !== undefined)
      throw new RelayError(
        'usage',
        `where: none of the last ${bodies.length} payloads like it has ${written} (did you mean ${nearest}?)`,
        { quotesOutside: true },
      )
  }
}

/** {@link requireKnownPaths} for a wait, before it begins. */
export async function requirePathsOfWait({
  shell,
  given: { match, where, source, repo },
}: Call): Promise<void> {
  if (typeof match !== 'string' || !Array.isArray(where)) return
  const conditions = where.map((text) => parseCondition(String(text), '--where'))
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const filter = readFilter({ event: [match], source: text(source), repo: text(repo) }, Date.now())
  await using profile = await openProfile(shell, {}, { mustExist: false })
  if (hasJournal(profile)) await requireKnownPaths(await profile.journal(), filter, conditions)
}
