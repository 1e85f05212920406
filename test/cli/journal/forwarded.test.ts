import { expect, it } from 'vitest'
import { awaitForwarded } from '../../../src/old/journal/forwarded.js'
import type { Summary } from '../../../src/journal/types.js'
import { Journal } from '../../../src/journal/journal.js'
import { attempt, delivery, failed, open, succeeded, waiting } from '../../journal/rig.js'

const TARGETS = ['*=http://localhost:1', '*=http://localhost:2'] as const

async function summaryOf(journal: Journal, n: number): Promise<Summary> {
  const [summary] = await journal.summaries([n])
  if (!summary) throw new Error(`there is no #${n}`)
  return summary
}

it('waits for every target, and returns the summary then', async () => {
  await using database = await open()
  const journal = new Journal(database.sql)
  await journal.append(delivery('a'), { targets: TARGETS, onDuplicate: 'if-failed' })
  const [one, two] = TARGETS
  const wait = awaitForwarded(journal, await summaryOf(journal, 1), 20_000, {})
  await journal.record(1, attempt(one), succeeded)
  await journal.record(1, attempt(two, { outcome: 'retry', status: 503 }), waiting)
  await journal.record(1, attempt(two, { outcome: 'refused', status: 404 }), failed)
  expect(await wait).toEqual(await summaryOf(journal, 1))
})

it('ends at the time limit, or when its signal aborts', async () => {
  await using database = await open()
  const journal = new Journal(database.sql)
  await journal.append(delivery('a'), { targets: TARGETS, onDuplicate: 'if-failed' })
  const summary = await summaryOf(journal, 1)
  expect(await awaitForwarded(journal, summary, 0, {})).toBeUndefined()
  const signal = AbortSignal.abort()
  await expect(awaitForwarded(journal, summary, 20_000, { signal })).rejects.toThrow('aborted')
})
