import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { takeInstance } from '../../src/instance/instance.js'
import type { Receipt } from '../../src/journal/delivery.js'
import { openJournal } from '../../src/journal/open.js'
import { watchOwnership } from '../../src/serve/ownership.js'
import type { Database } from '../../src/store/database.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { countOf, summariesOf } from '../helpers/journal.js'
import { delivery, KINDS, open } from '../journal/rig.js'

const take = (database: Database, pid = process.pid) =>
  takeInstance(database.store, {
    pid,
    url: 'http://127.0.0.1:1',
    publicUrl: 'http://127.0.0.1:1',
    provider: 'github',
    providerUrl: 'https://github.com',
  })

const LOST = {
  kind: 'unavailable',
  message: `Process ${process.pid} at http://127.0.0.1:1 has taken over this profile because this relay did not answer in time. This relay stops. To run both, choose another profile with --profile`,
}

describe.each(KINDS)('an instance over a %s database', (kind) => {
  it('notices by a timer that its profile was taken, and from then on at every check', async () => {
    await using database = await open(kind)
    await using ownership = watchOwnership(database, await take(database))
    await ownership.assert()
    expect(ownership.lost.aborted).toBe(false)
    await take(database)
    await once(ownership.lost, 'abort')
    expect(ownership.lost.reason).toMatchObject(LOST)
    await expect(ownership.assert()).rejects.toThrow(LOST.message)
    await database.store.delete('instance')
    await expect(ownership.assert()).rejects.toThrow(LOST.message)
  })

  it('has lost its profile too when its record is gone', async () => {
    await using database = await open(kind)
    await using ownership = watchOwnership(database, await take(database))
    await database.store.delete('instance')
    await expect(ownership.assert()).rejects.toThrow('Another process has taken over this profile')
  })

  it('notices it within a write to the journal, and nothing is written', async () => {
    await using database = await open(kind)
    await using ownership = watchOwnership(database, await take(database))
    const journal = openJournal(database.sql, { targetsOf: () => ['a'], guard: ownership.guard })
    await journal.append(delivery('1'))
    const before = await summariesOf(journal)
    await take(database)
    const writes = [
      journal.append(delivery('2')),
      journal.append(delivery('1')),
      journal.finish(1, 'a', { status: 'succeeded', tries: 0, since: 0 }),
    ]
    expect(await Promise.allSettled(writes)).toMatchObject(writes.map(() => ({ reason: LOST })))
    expect(await summariesOf(journal)).toEqual(before)
    expect(ownership.lost.aborted).toBe(true)
  })
})

describe('an instance whose profile is taken while it writes', () => {
  it('adds nothing after that moment, also where the write had begun before', async () => {
    const folder = emptyFolder()
    await using older = await openDatabase({ kind: 'file', folder, thread: true })
    await using newer = await openDatabase({ kind: 'file', folder, thread: true })
    await using ownership = watchOwnership(older, await take(older))
    const journal = openJournal(older.sql, { guard: ownership.guard })
    const successor = openJournal(newer.sql)
    const counts: number[] = []
    const taken = (async () => {
      await take(newer)
      counts.push(await countOf(successor))
    })()
    const writes: Promise<Receipt>[] = []
    while (counts.length === 0) {
      for (let i = 0; i < 20; i++) writes.push(journal.append(delivery(`${writes.length}`)))
      await Promise.race([taken, Promise.allSettled(writes.slice(-20))])
    }
    const stored = (await Promise.allSettled(writes)).filter(({ status }) => status === 'fulfilled')
    expect([stored.length, await countOf(successor)]).toEqual([counts[0], counts[0]])
    expect(counts[0]).toBeLessThan(writes.length)
  })
})
