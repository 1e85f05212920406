import { RelayError } from '../../base/errors.js'
import { type Condition, DeliveryView, parseCondition } from '../../dispatch/where.js'
import { isFormBody } from '../../http/forms.js'
import type { Filter } from '../../journal/filter.js'
import type { Journal } from '../../journal/journal.js'
import { lackingPaths, readPath } from '../../replay/edit.js'
import { hasJournal, readFilter } from '../journal.js'
import { openProfile } from '../profile.js'
import { requireKnownMatch, requireOwnExample } from './known.js'
import type { Call } from './tool.js'

/** Parses conditions. @throws RelayError `usage`, also for what would compare with a text that begins with `=` */
export function readConditions(texts: readonly unknown[]): Condition[] {
  return texts.map((each) => {
    const text = String(each)
    if (/^[^=!~]*[=!]==/.test(text)) throw new RelayError('usage', `where ${text}: write == or !=`)
    return parseCondition(text, '--where')
  })
}

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

/** Checks that an example is not of another source than the code host. @throws RelayError `usage` that names the source */
export async function requireTriggered({ shell, flags, given }: Call): Promise<void> {
  const { event, source, body } = given
  if (typeof event !== 'string' || source !== undefined || body !== undefined) return
  await using profile = await openProfile(shell, flags, { mustExist: false, problems: 'report' })
  await requireOwnExample(profile, event)
}

/** Checks what a wait waits for, before it begins. @throws RelayError `usage` with the nearest name or path */
export async function requireWaitable({
  shell,
  flags,
  given: { match, where, source, repo },
}: Call): Promise<void> {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const filter = readFilter({ event: [String(match)], source: text(source), repo: text(repo) }, Date.now())
  await using profile = await openProfile(shell, flags, { mustExist: false, problems: 'report' })
  const conditions = readConditions(Array.isArray(where) ? where : [])
  await requireKnownMatch(profile, filter)
  if (!hasJournal(profile)) return
  await requireKnownPaths(await profile.journal(), filter, conditions)
}
