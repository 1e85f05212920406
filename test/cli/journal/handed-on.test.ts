import { expect, it } from 'vitest'
import { handedOn } from '../../../src/cli/journal/handed-on.js'
import type { Summary } from '../../../src/journal/delivery.js'
import type { Journal } from '../../../src/journal/journal.js'
import { openJournal } from '../../../src/journal/open.js'
import { attempt, delivery, failed, open, succeeded, waiting } from '../../journal/rig.js'

const TARGETS = ['*=http://localhost:1', '*=http://localhost:2'] as const

function summaryOf(journal: Journal, n: number): Summary {
  const [summary] = journal.summaries({ from: n, to: n })
  if (!summary) throw new Error(`there is no #${n}`)
  return summary
}

it('waits for every target, and gives how it then stands', async () => {
  await using database = await open('memory')
  const journal = openJournal(database, { targetsOf: () => TARGETS })
  await journal.append(delivery('a'))
  const [one, two] = TARGETS
  const wait = handedOn(journal, summaryOf(journal, 1), 20_000, {})
  await journal.record(1, attempt(one), succeeded)
  await journal.record(1, attempt(two, { outcome: 'retry', status: 503 }), waiting)
  await journal.record(1, attempt(two, { outcome: 'refused', status: 404 }), failed)
  expect(await wait).toEqual(summaryOf(journal, 1))
})

it('gives up when the time is over, or when it is told to', async () => {
  await using database = await open('memory')
  const journal = openJournal(database, { targetsOf: () => TARGETS })
  await journal.append(delivery('a'))
  const summary = summaryOf(journal, 1)
  expect(await handedOn(journal, summary, 0, {})).toBeUndefined()
  const signal = AbortSignal.abort()
  await expect(handedOn(journal, summary, 20_000, { signal })).rejects.toThrow('aborted')
})
