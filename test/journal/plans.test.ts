import { describe, expect, it } from 'vitest'
import { parseMatch } from '../../src/journal/match.js'
import { openJournal } from '../../src/journal/open.js'
import type { Filter } from '../../src/journal/select.js'
import type { Sql, SqlValue, Step } from '../../src/store/sql.js'
import { collect, delivery, failed, KINDS, NOW, open } from './rig.js'

/** A step of how SQLite finds what a query asks for, in its own words. */
interface PlanStep {
  readonly id: number
  readonly parent: number
  readonly detail: string
}

const plan = (
  sql: Sql,
  [text, values]: readonly [string, readonly SqlValue[]],
): Promise<readonly PlanStep[]> => sql.query<PlanStep>(`EXPLAIN QUERY PLAN ${text}`, values)

/** What `work` asks the database. */
async function queriesOf(sql: Sql, work: (sql: Sql) => Promise<unknown>) {
  const queries: (readonly [string, readonly SqlValue[]])[] = []
  await work({
    ...sql,
    query: (text, values = []) => {
      queries.push([text, values])
      return sql.query(text, values)
    },
  })
  return queries
}

const select =
  (filter: Filter) =>
  (sql: Sql): Promise<unknown> =>
    collect(openJournal(sql, { clock: () => NOW }).select(filter))
const since = NOW - 3_600_000
const events = (...texts: string[]) => texts.map(parseMatch)

/**
 * Steps that would read the whole journal or sort it. A scan in the order of the numbers is none: it ends at its limit. `edge` is
 * one row. Nor is sorting one entry's forwards, or pages of several events, each of which is sorted already.
 */
function slowSteps(steps: readonly PlanStep[]): string[] {
  const isFine =
    /^SCAN (?:delivery|page|edge|CONSTANT ROW)$|^SCAN .* USING (?:COVERING )?INDEX|FOR LAST \d TERMS OF ORDER BY$/
  const ofPage = (step: PlanStep): boolean =>
    steps.some(({ parent, detail }) => parent === step.parent && detail === 'SCAN page')
  return steps
    .filter((step) => /^SCAN|TEMP B-TREE/.test(step.detail) && !isFine.test(step.detail) && !ofPage(step))
    .map(({ detail }) => detail)
}

describe('what people ask of a journal', () => {
  it.each<[string, (sql: Sql) => Promise<unknown>, RegExp]>([
    ['the newest', select({ last: 20 }), /SEARCH delivery USING INTEGER PRIMARY KEY \(rowid<\?\)/],
    ['an event', select({ events: events('push'), last: 20 }), /INDEX delivery_event \(event=\? AND n<\?\)/],
    [
      'an event and action',
      select({ events: events('issues.opened'), last: 20 }),
      /INDEX delivery_event \(event=\? AND n<\?\)/,
    ],
    ['any event of an action', select({ events: events('*.opened'), last: 20 }), /USING INTEGER PRIMARY KEY/],
    ['a repository', select({ repo: 'octo/demo', last: 20 }), /INDEX delivery_repo \(<expr>=\? AND n<\?\)/],
    ['what failed', select({ status: 'failed', last: 20 }), /INDEX forward_failed \(n<\?\)/],
    ['what failed of an event', select({ status: 'failed', events: events('push') }), /INDEX forward_failed/],
    [
      'what was forwarded to no target',
      select({ status: 'none', last: 20 }),
      /USING INTEGER PRIMARY KEY \(rowid<\?\)/,
    ],
    ['since a time', select({ since }), /INDEX delivery_received_at \(received_at>\? AND received_at<\?\)/],
    [
      'a repository since a time',
      select({ since, repo: 'octo/demo' }),
      /INDEX delivery_repo \(<expr>=\? AND n>\? AND n<\?\)/,
    ],
    [
      'all at once',
      select({ since, repo: 'octo/demo', status: 'failed', events: events('push') }),
      /SEARCH forward USING/,
    ],
    ['before an entry', select({ before: 10, last: 20 }), /USING INTEGER PRIMARY KEY/],
    ['after an entry', (sql) => openJournal(sql).after(10, 9), /USING INTEGER PRIMARY KEY \(rowid>\?\)/],
    ['an entry', (sql) => openJournal(sql).read(10), /SEARCH body USING INTEGER PRIMARY KEY/],
    ['the attempts', (sql) => openJournal(sql).attempts(10), /SEARCH attempt USING INDEX/],
    [
      'ids of deliveries',
      (sql) => openJournal(sql).known(['1', '2']),
      /SEARCH delivery USING .*INDEX delivery_delivery_id/,
    ],
    [
      'ids that were removed',
      (sql) => openJournal(sql).known(['1', '2']),
      /SEARCH removed USING .*INDEX removed_id/,
    ],
    ['the number of the newest', (sql) => openJournal(sql).newest(), /SEARCH delivery/],
    [
      'what waits',
      (sql) => collect(openJournal(sql).waiting()),
      /SEARCH forward USING INDEX forward_waiting \(\(n,position,target\)>\(\?,\?,\?\)\)/,
    ],
  ])('is found by an index, not by reading all of it nor by sorting: %s', async (_, work, expected) => {
    await using database = await open('memory')
    const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
    for (let n = 1; n <= 20; n++) {
      await journal.append(delivery(`${n}`))
      await journal.finish(n, 'a', failed)
    }
    const plans = await Promise.all(
      (await queriesOf(database.sql, work)).map((query) => plan(database.sql, query)),
    )
    expect(plans.flatMap((steps) => steps.map(({ detail }) => detail)).join('\n')).toMatch(expected)
    for (const steps of plans) expect(slowSteps(steps)).toEqual([])
  })

  it.skipIf(!KINDS.includes('postgres'))(
    'is stored by its key, also where the server does not know yet how much is in its tables',
    async () => {
      await using database = await open('postgres')
      const { sql } = database
      const steps: Step[] = []
      const transaction: Sql['transaction'] = (given, options) => {
        steps.push(...given)
        return sql.transaction(given, options)
      }
      const journal = openJournal({ ...sql, transaction }, { targetsOf: () => ['a'] })
      await journal.append(delivery('1'))
      const plans = await Promise.all(
        steps.map(({ sql: text, values }) => sql.query(`EXPLAIN ${text}`, values)),
      )
      const lines = plans.flat().map((row) => String(row['QUERY PLAN']))
      const scans = lines.filter((line) => line.includes(' on delivery') && /Scan/.test(line))
      expect(scans.length).toBeGreaterThan(2)
      expect(
        scans.filter((line) => !/delivery_dedupe_key_key|delivery_pkey|delivery_delivery_id/.test(line)),
      ).toEqual([])
    },
  )

  it('counts what waits without reading what has ended', async () => {
    await using database = await open('memory')
    const [query = ['', []]] = await queriesOf(database.sql, (sql) => openJournal(sql).queues())
    const [step] = await plan(database.sql, query)
    expect(step?.detail).toBe('SCAN forward USING INDEX forward_waiting')
  })
})
