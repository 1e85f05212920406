import { expect, it } from 'vitest'
import { type Activity, createActivityFeed } from '../../src/inspector/activity.js'
import { openJournal } from '../../src/journal/open.js'
import { publishRemoteChanges } from '../../src/serve/remote-changes.js'
import type { LeaseListener } from '../../src/store/leases.js'
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
  // Only as many as a page may show.
  listener?.onNotice({ kind: 'journal', newest: 1000, bytes: 0, words: [] })
  expect(numbers().length).toBe(200)
})
