import { describe, expect, it } from 'vitest'
import { createFollower } from '../../src/cli/commands/log/follow.js'
import { poll } from '../../src/cli/journal/poll.js'
import { openJournal } from '../../src/journal/open.js'
import { Arrivals } from '../../src/serve/arrivals.js'
import { emptyFolder } from '../helpers/context.js'
import { delivery, KINDS, open } from './rig.js'

const WRITERS = 16
const EACH = 25
const TOTAL = WRITERS * EACH
const EVERY = Array.from({ length: TOTAL }, (_, i) => i + 1)

/** A database in memory has one process. */
const SHARED = KINDS.filter((kind) => kind !== 'memory')

describe.each(SHARED)('16 writers in four processes: %s', (kind) => {
  it('let no reader skip a number: not one that follows, nor one that polls, nor a queue', async () => {
    const folder = emptyFolder()
    const databases = [await open(kind, folder)]
    for (let i = 1; i < 5; i++) databases.push(await open(kind, folder))
    const [reading, ...writing] = databases
    if (!reading) throw new Error('unreachable: it was opened')
    const journal = openJournal(reading.sql)
    const done = new AbortController()
    const { signal } = done
    const polled: number[] = []
    const followed: number[] = []
    const queued: number[] = []
    const arrivals = new Arrivals({ journal, take: (n) => queued.push(n) })
    await arrivals.start()
    const follower = await createFollower(journal, {}, 0)
    const readers = [
      (async () => {
        for await (const batch of poll(journal, 0, { signal })) polled.push(...batch.map(({ n }) => n))
      })(),
      (async () => {
        for await (const { n } of follower.changes({ signal })) followed.push(n)
      })(),
    ].map((reader) => reader.catch(() => {}))
    // As a relay hears of what others have stored: some of the numbers, in any order.
    const heard = (newest: number): void =>
      arrivals.announced({ kind: 'journal', newest, bytes: 0, words: [] })
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        const database = writing[writer % writing.length]
        if (!database) throw new Error('unreachable: there are four')
        const own = openJournal(database.sql, { targetsOf: () => ['a'] })
        for (let i = 0; i < EACH; i++) {
          const { n } = await own.append(delivery(`${writer}-${i}`))
          if (n % 3 === 0) heard(n)
        }
      }),
    )
    heard(TOTAL)
    await expect
      .poll(() => [polled.length, new Set(followed).size, queued.length >= TOTAL], { timeout: 20_000 })
      .toEqual([TOTAL, TOTAL, true])
    done.abort()
    await Promise.all(readers)
    await arrivals[Symbol.asyncDispose]()
    for (const database of databases) await database[Symbol.asyncDispose]()
    expect(polled).toEqual(EVERY)
    expect([...new Set(followed)]).toEqual(EVERY)
    // Each for the first time after all before it; a search may give one again.
    expect([...new Set(queued)]).toEqual(EVERY)
  }, 60_000)
})
