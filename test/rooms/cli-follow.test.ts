import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createFollower } from '../../src/cli/commands/log.js'
import type { Plan } from '../../src/journal/types.js'
import { Journal } from '../../src/journal/journal.js'
import { attempt, delivery, failed, open, succeeded } from './journal-rig.js'

const TARGET = '*=http://localhost:1'
const PLAN: Plan = { targets: [TARGET], onDuplicate: 'if-failed' }

/** A journal with one delivery that waits for a target, and a follower of it. */
async function following(filter: { readonly status?: 'failed' }) {
  const database = await open()
  const journal = new Journal(database.sql)
  await journal.append(delivery('a'), PLAN)
  const follower = await createFollower(journal, filter, 1)
  const next = async () => (await follower.changes(turns())[Symbol.asyncIterator]().next()).value
  return { journal, follower, next, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

/** Moments at which to read, one in each turn of the event loop. */
async function* turns() {
  for (;;) yield await setImmediate()
}

it('prints a change that comes while the entries before it are printed', async () => {
  await using here = await following({ status: 'failed' })
  await here.journal.record(1, attempt(TARGET), failed)
  expect(await here.next()).toMatchObject({ n: 1, forwards: { [TARGET]: { status: 'failed' } } })
})

it('does not print an entry again in the state in which it was printed', async () => {
  await using here = await following({})
  await here.journal.record(1, attempt(TARGET), failed)
  for (const summary of await here.journal.summaries([1])) here.follower.printed(summary)
  const next = here.next()
  await here.journal.append(delivery('b'), PLAN)
  expect(await next).toMatchObject({ n: 2 })
  await here.journal.record(1, attempt(TARGET, { at: 1 }), succeeded)
  expect(await here.next()).toMatchObject({ n: 1, forwards: { [TARGET]: { status: 'succeeded' } } })
})
