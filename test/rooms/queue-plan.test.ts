import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { Journal } from '../../src/journal/journal.js'
import { openPostgres } from '../../src/store/postgres.js'
import type { Sql, SqlValue } from '../../src/store/sql.js'
import { MEMORY, openSqlite } from '../../src/store/sqlite.js'
import { describeWith } from '../kit/needs.js'
import { database, PASSWORD } from '../kit/postgres.js'

const ROWS = 1_000_000
/** Every so many deliveries one is to be tried again. */
const AGAIN = 100_000

interface Asked {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/** What a journal asks for what is sent next, in every form. */
async function asked(): Promise<readonly (Asked & { readonly ordered: boolean })[]> {
  const all: (Asked & { readonly ordered: boolean })[] = []
  for (const ordered of [false, true])
    for (const except of [[], [1], [1, 2, 3, 4, 5, 6, 7, 8]]) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a query calls nothing else
      const sql = {
        query: (text: string, values: readonly SqlValue[]) => {
          all.push({ text, values, ordered })
          return Promise.resolve([])
        },
      } as unknown as Sql
      await new Journal(sql).next('a', { limit: 8, except, ordered })
    }
  return all
}

const FORWARDS = (numbers: string): string =>
  `INSERT INTO forward (n, target, position, status, tries, since, due)
    SELECT n, 'a', 0, 'waiting', 0, 1, CASE WHEN n % ${AGAIN} = 0 THEN n ELSE 0 END FROM ${numbers}`

it('what is sent next is read through indexes on SQLite, also of a million', async () => {
  await using sql = await openSqlite(MEMORY)
  await sql.query('PRAGMA foreign_keys = OFF')
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})`
  await sql.query(`${numbers} ${FORWARDS('numbers')}`)
  expect(await sql.query('SELECT count(*) AS count FROM forward')).toEqual([{ count: ROWS }])
  for (const { text, values, ordered } of await asked()) {
    const plan = (await sql.query<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`, values)).map(
      ({ detail }) => detail,
    )
    const steps = plan.filter((detail) => /\bforward\b|TEMP B-TREE/.test(detail))
    expect({ ordered, steps }).toEqual({
      ordered,
      steps: [
        'SEARCH forward USING INDEX forward_first (target=?)',
        'SEARCH forward USING INDEX forward_again (target=? AND due>?)',
        // In strict order, only what is to be tried again is sorted: usually one delivery.
        ...(ordered ? ['USE TEMP B-TREE FOR ORDER BY'] : []),
      ],
    })
  }
})

describeWith('postgres', 'what is sent next, on PostgreSQL', () => {
  interface Plan {
    readonly 'Node Type'?: string
    readonly 'Index Name'?: string
    readonly 'Relation Name'?: string
    readonly Plans?: readonly Plan[]
  }
  const nodes = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]

  it('is read through indexes, also of a million', async () => {
    await using server = await database()
    const store = new SharedStore(server.store, { password: new Secret(PASSWORD) })
    await using sql = await openPostgres({ store, profile: 'default' })
    const fill = FORWARDS(`generate_series(1, ${ROWS}) AS numbers (n)`)
    const key = 'ALTER TABLE forward DROP CONSTRAINT forward_n_fkey'
    await server.run(`SET search_path = relay_default; ${key}; ${fill}; ANALYZE forward`)
    for (const { text, values, ordered } of await asked()) {
      const [row] = await sql.query<{ 'QUERY PLAN': string }>(`EXPLAIN (FORMAT JSON) ${text}`, values)
      const [{ Plan: plan }]: readonly [{ readonly Plan: Plan }] = JSON.parse(String(row?.['QUERY PLAN']))
      const all = nodes(plan)
      const read = all.filter((node) => node['Relation Name'] === 'forward')
      expect({ ordered, read: read.map((node) => [node['Node Type'], node['Index Name']]) }).toEqual({
        ordered,
        read: ['forward_first', 'forward_again'].map((name) => ['Index Scan', name]),
      })
      expect(all.filter((node) => /Sort/.test(node['Node Type'] ?? ''))).toHaveLength(ordered ? 1 : 0)
    }
  })
})
