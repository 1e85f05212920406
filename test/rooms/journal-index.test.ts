import { expect, it } from 'vitest'
import { FAILED_ATTEMPT } from '../../src/store/schema.js'
import { MEMORY, openSqlite } from '../../src/store/sqlite.js'

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
