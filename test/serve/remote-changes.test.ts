import { expect, it } from 'vitest'
import { type Activity, createActivityFeed, MAX_LINES } from '../../src/inspector/activity.js'
import { openJournal } from '../../src/journal/open.js'
import { publishRemoteChanges } from '../../src/serve/remote-changes.js'
import type { LeaseListener } from '../../src/store/leases.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { delivery, open } from '../journal/rig.js'

it('what other relays change is published to open inspectors, also after a break', async () => {
  await using database = await open('memory')
  const journal = openJournal(database.sql)
  const activity = createActivityFeed()
  const published: Activity[] = []
  using _ = activity.subscribe((each) => published.push(each))
  let listener: LeaseListener | undefined
  using _changes = publishRemoteChanges(
    { activity, journal },
    {
      subscribe(given) {
        listener = given
        return { [Symbol.dispose]() {} }
      },
    },
  )
  const numbers = (): readonly number[] =>
    published.splice(0).flatMap((each) => (each.type === 'changed' ? [each.n] : []))
  listener?.onNotice({ kind: 'journal', newest: 3, bytes: 0, words: [] })
  expect(numbers()).toEqual([1, 2, 3])
  listener?.onNotice({ kind: 'journal', newest: 4, bytes: 0, words: ['2', '1+'] })
  expect(numbers()).toEqual([4, 2, 1])
  listener?.onNotice({ kind: 'journal', newest: 4, bytes: 0, words: undefined })
  expect(numbers()).toEqual([1, 2, 3, 4])
  listener?.onNotice({ kind: 'leases' })
  expect(numbers()).toEqual([])
  for (const id of ['1', '2', '3', '4', '5', '6']) await journal.append(delivery(id))
  listener?.onListening()
  await expect.poll(() => published.length).toBe(6)
  expect(numbers()).toEqual([1, 2, 3, 4, 5, 6])
  // More than one event has lines for: an open page reads the list again.
  listener?.onNotice({ kind: 'journal', newest: 1000, bytes: 0, words: [] })
  expect(numbers().length).toBe(MAX_LINES + 1)
})

const WRITERS = 16
const EACH = 25
const EVERY = Array.from({ length: WRITERS * EACH }, (_, i) => i + 1)

describeWith('postgres', '16 writers in four relays', () => {
  it('let no inspector of a fifth skip a number', async () => {
    const folder = emptyFolder()
    await using reading = await open('postgres', folder)
    const writing = await Promise.all([1, 2, 3, 4].map(() => open('postgres', folder)))
    const { leases } = reading.sql
    if (!leases) throw new Error('the database has no leases')
    const activity = createActivityFeed()
    const published = new Set<number>()
    using _ = activity.subscribe((each) => each.type === 'changed' && published.add(each.n))
    const subscribe = (listener: LeaseListener): Disposable => {
      leases.listen(listener)
      return { [Symbol.dispose]() {} }
    }
    using _changes = publishRemoteChanges({ activity, journal: openJournal(reading.sql) }, { subscribe })
    // This opens the connection that listens.
    await leases.beat()
    const write = async (writer: number): Promise<void> => {
      const database = writing[writer % writing.length]
      if (!database) throw new Error('unreachable: there are four')
      const journal = openJournal(database.sql)
      for (let i = 0; i < EACH; i++) await journal.append(delivery(`${writer}-${i}`))
    }
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
    await expect.poll(() => published.size, { timeout: 20_000 }).toBe(EVERY.length)
    // As they were published for the first time.
    expect([...published]).toEqual(EVERY)
    for (const database of writing) await database[Symbol.asyncDispose]()
  }, 60_000)
})
