import { describe, expect, it } from 'vitest'
import { aborted } from '../../src/base/abort.js'
import { RelayError } from '../../src/base/errors.js'
import { openJournal } from '../../src/journal/open.js'
import { Arrivals } from '../../src/serve/arrivals.js'
import { attempt, collect, delivery, failed, open, succeeded } from '../journal/rig.js'

interface Broken {
  reads: number
  isAway: boolean
  /** What answers wait for. */
  answers: Promise<unknown> | undefined
}

/** A relay's own journal, that of another relay on the same database, and what is passed on. */
async function createRig() {
  const database = await open('memory')
  const rules = { targetsOf: () => ['a', 'b'] }
  const [own, other] = [openJournal(database.sql, rules), openJournal(database.sql, rules)]
  const taken: string[] = []
  const broken: Broken = { reads: 0, isAway: false, answers: undefined }
  const arrivals = new Arrivals({
    journal: {
      ...own,
      async *waiting(filter) {
        broken.reads++
        if (broken.isAway) throw new RelayError('storage', 'away')
        yield* own.waiting(filter)
        await broken.answers
      },
    },
    take: (n, targets) => void taken.push(...targets.map((target) => `${n}${target}`)),
  })
  return {
    own,
    other,
    taken,
    broken,
    arrivals,
    async store(id: string) {
      const { n, targets } = await own.append(delivery(id))
      arrivals.stored(n, targets)
    },
    announce: (newest: number, words: readonly string[] | undefined) =>
      arrivals.announced({ kind: 'journal', newest, bytes: 0, words }),
    async [Symbol.asyncDispose]() {
      await arrivals[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

describe('what arrives at a relay of a service', () => {
  it('is passed on without reading, as long as no other relay stores anything', async () => {
    await using rig = await createRig()
    await rig.own.append(delivery('before'))
    await rig.arrivals.start()
    await rig.store('2')
    await rig.store('3')
    expect(rig.taken).toEqual(['2a', '2b', '3a', '3b'])
    expect(rig.broken.reads).toBe(0)
  })

  it('comes after what other relays have stored before', async () => {
    await using rig = await createRig()
    await rig.arrivals.start()
    await rig.other.append(delivery('1'))
    await rig.other.append(delivery('2'))
    await rig.store('3')
    expect(rig.taken).toEqual([])
    await expect.poll(() => rig.taken).toEqual(['1a', '1b', '2a', '2b', '3a', '3b'])
    await rig.other.append(delivery('4'))
    rig.announce(4, [])
    await expect.poll(() => rig.taken.slice(6)).toEqual(['4a', '4b'])
    await rig.store('5')
    expect(rig.taken.slice(8)).toEqual(['5a', '5b'])
    expect(rig.broken.reads).toBe(2)
  })

  it('is also what waits again, where another relay has let it', async () => {
    await using rig = await createRig()
    await rig.other.append(delivery('1'))
    await rig.other.record(1, attempt('a'), failed)
    await rig.other.record(1, attempt('b'), succeeded)
    await rig.arrivals.start()
    await rig.other.again(1, ['a'])
    rig.announce(1, ['1+'])
    await expect.poll(() => rig.taken).toEqual(['1a'])
    rig.announce(1, ['1'])
    rig.announce(1, ['1', 'from a newer version'])
    expect(rig.broken.reads).toBe(0)
    // Too much to say: all is searched.
    await rig.other.again(1, ['b'])
    rig.announce(1, undefined)
    await expect.poll(() => rig.taken.slice(1)).toEqual(['1a', '1b'])
  })

  it('is also what waits again while it is read, in an answer that is older', async () => {
    await using rig = await createRig()
    await rig.arrivals.start()
    await rig.other.append(delivery('1'))
    for (const target of ['a', 'b']) await rig.other.record(1, attempt(target), succeeded)
    const read = new AbortController()
    rig.broken.answers = aborted(read.signal)
    rig.announce(1, [])
    await expect.poll(() => rig.broken.reads).toBe(1)
    // The second one is answered after the first: what the read has found is known.
    await collect(rig.own.waiting())
    await rig.other.again(1, ['a'])
    rig.announce(1, ['1+'])
    await rig.own.forwards(1)
    read.abort()
    await expect.poll(() => rig.taken).toEqual(['1a'])
  })

  it('is found by a search when a notice was lost, or the database was away', async () => {
    await using rig = await createRig()
    await rig.arrivals.start()
    await rig.other.append(delivery('1'))
    await expect.poll(() => new Set(rig.taken), { timeout: 10_000 }).toEqual(new Set(['1a', '1b']))
    rig.broken.isAway = true
    await rig.other.append(delivery('2'))
    const { reads } = rig.broken
    rig.announce(2, [])
    await expect.poll(() => rig.broken.reads).toBeGreaterThan(reads)
    rig.broken.isAway = false
    await rig.arrivals.search()
    await expect.poll(() => new Set(rig.taken)).toEqual(new Set(['1a', '1b', '2a', '2b']))
  })
})
