import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Summary } from '../../src/journal/delivery.js'
import { matches, parseMatch } from '../../src/journal/match.js'
import { openJournal } from '../../src/journal/open.js'
import { type Filter, select } from '../../src/journal/select.js'
import { attempt, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

const summary = (n: number, more: Partial<Summary>): Summary => {
  const { body, ...rest } = delivery(`${n}`)
  return { n, ...rest, size: body.length, duplicates: 0, handOns: {}, ...more }
}
const journalOf = (summaries: readonly Summary[]) => ({ summaries: () => summaries.toReversed() })

const someSummary: fc.Arbitrary<Partial<Summary>> = fc.record({
  event: fc.constantFrom('push', 'issues'),
  action: fc.constantFrom(null, 'opened', 'closed'),
  repo: fc.constantFrom(null, 'octo/demo', 'Octo/Demo', 'octo/other'),
  // In disorder, but less than a minute.
  receivedAt: fc.integer({ min: NOW, max: NOW + 59_000 }),
  handOns: fc.constantFrom({}, { a: failed, b: waiting }, { a: succeeded }),
})
const someFilter: fc.Arbitrary<Filter> = fc.record(
  {
    events: fc.array(fc.constantFrom('push', 'issues.opened', '*.closed', '*').map(parseMatch)),
    repo: fc.constantFrom('octo/demo', 'OCTO/other', 'none/at-all'),
    since: fc.integer({ min: NOW - 1, max: NOW + 60_000 }),
    failed: fc.boolean(),
    last: fc.nat(5),
  },
  { requiredKeys: [] },
)

/** What is promised, one condition after the other. */
function naive(summaries: readonly Summary[], { events = [], repo, since, failed: wanted, last }: Filter) {
  let left = summaries.toReversed()
  if (events.length > 0) left = left.filter((one) => events.some((match) => matches(match, one)))
  if (repo !== undefined) left = left.filter((one) => one.repo?.toLowerCase() === repo.toLowerCase())
  if (since !== undefined) left = left.filter((one) => one.receivedAt >= since)
  if (wanted !== undefined) left = left.filter((one) => (one.handOns['a']?.state === 'failed') === wanted)
  return left.slice(0, last)
}

describe('select', () => {
  it('gives what a plain filter gives', () => {
    fc.assert(
      fc.property(fc.array(someSummary), someFilter, (given, filter) => {
        const summaries = given.map((more, i) => summary(i + 1, more))
        expect([...select(journalOf(summaries), filter)]).toEqual(naive(summaries, filter))
      }),
      { numRuns: 1000 },
    )
  })

  it('stops reading once it has enough, or is past what is young enough', () => {
    const summaries = Array.from({ length: 100 }, (_, i) => summary(i + 1, { receivedAt: NOW + i * 60_000 }))
    let read = 0
    const counting = {
      *summaries() {
        for (const one of summaries.toReversed()) {
          read++
          yield one
        }
      },
    }
    const reading = (filter: Filter) => {
      read = 0
      return [[...select(counting, filter)].map(({ n }) => n), read]
    }
    expect(reading({ last: 2 })).toEqual([[100, 99], 2])
    expect(reading({ since: NOW + 98 * 60_000 })).toEqual([[100, 99], 4])
    expect(reading({ last: 0 })).toEqual([[], 0])
  })

  it.each(KINDS)('reads no bodies in a %s database', async (kind) => {
    await using database = await open(kind)
    const journal = openJournal(database, { targetsOf: () => ['a'] })
    for (const id of ['1', '2', '3', '2']) await journal.append(delivery(id))
    await journal.record(2, attempt('a', { outcome: 'refused', status: 404 }), failed)
    const bodies = database.table('journal-body', { keys: 'number', values: 'bytes' })
    await database.commit([1, 2, 3].map((n) => bodies.remove(n)))
    expect([...select(journal, { failed: true })]).toEqual([
      summary(2, { handOns: { a: failed }, duplicates: 1 }),
    ])
    expect([...select(journal)].map(({ n }) => n)).toEqual([3, 2, 1])
  })
})
