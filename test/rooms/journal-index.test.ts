import { expect, it } from 'vitest'
import { FAILED_ATTEMPT, SCHEMA } from '../../src/store/schema.js'
import { MEMORY, openSqlite } from '../../src/store/sqlite.js'
import { describeWith } from '../kit/needs.js'
import { database } from '../kit/postgres.js'

/** Both engines match the words of a partial index, so these must be the ones that the journal asks with. */
const QUERIES = [
  `SELECT n FROM forward WHERE status = 'failed' AND n >= 1 AND n < 9`,
  `SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= 1 AND n < 9`,
  `SELECT n FROM delivery WHERE n >= 1 AND n < 9 AND (n IN (SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= 1 AND n < 9)) ORDER BY n DESC LIMIT 5`,
]

it('finds failed attempts through an index on SQLite', async () => {
  await using sql = await openSqlite(MEMORY)
  for (const query of QUERIES) {
    const plan = await sql.query<{ detail: string }>(`EXPLAIN QUERY PLAN ${query}`)
    expect(plan.map(({ detail }) => detail).join('\n')).toMatch(
      /SEARCH forward USING (?:COVERING )?INDEX forward_failed \(n>\? AND n<\?\)/,
    )
  }
})

describeWith('postgres', 'failed attempts', () => {
  it('finds them on PostgreSQL', async () => {
    await using own = await database()
    const client = await own.connect()
    try {
      await client.query(SCHEMA.replaceAll('BLOB', 'BYTEA'))
      // For a few rows it would read them all.
      await client.query(
        'SET enable_seqscan = off; DROP INDEX forward_waiting; ALTER TABLE forward DROP CONSTRAINT forward_pkey',
      )
      for (const query of QUERIES) {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${query}`)
        const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
        expect(plan).toMatch(
          /Index (?:Only )?Scan (?:Backward )?using forward_failed|Bitmap Index Scan on forward_failed/,
        )
      }
    } finally {
      await client.end()
    }
  })
})
