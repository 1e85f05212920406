import path from 'node:path'
import { expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import type { Database } from '../../src/store/database.js'
import type { Leases, Notice } from '../../src/store/leases.js'
import { emptyFolder } from '../helpers/context.js'
import { summariesOf } from '../helpers/journal.js'
import { describeWith } from '../kit/needs.js'
import { sharedPostgres } from '../helpers/postgres.js'
import { attempt, delivery, succeeded, waiting } from '../journal/rig.js'
import { openKind } from './kinds.js'

function leasesOf({ sql }: Database): Leases {
  if (!sql.leases) throw new Error('the database has no leases')
  return sql.leases
}

/** Two relays that have the same profile open. */
async function pair() {
  const folder = emptyFolder()
  const [one, other] = [await openKind('postgres', folder), await openKind('postgres', folder)]
  return {
    schema: `relay_${path.basename(folder)}`,
    one,
    other,
    first: leasesOf(one),
    second: leasesOf(other),
    async [Symbol.asyncDispose]() {
      await one[Symbol.asyncDispose]()
      await other[Symbol.asyncDispose]()
    },
  }
}

/** Lets a relay seem to be silent for so long, in milliseconds. */
async function silence({ sql }: Database, { holder }: Leases, ms: number): Promise<void> {
  await sql.transaction([{ sql: 'UPDATE lease SET beat = beat - ? WHERE holder = ?', values: [ms, holder] }])
}

describeWith('postgres', 'the leases of a shared database', () => {
  it('have one holder, until it gives them back or is silent for 3 s; the epoch grows', async () => {
    await using rig = await pair()
    const { first, second } = rig
    expect([...(await first.claim(['a', 'b']))]).toEqual([
      ['a', 1],
      ['b', 2],
    ])
    expect([...(await second.claim(['a', 'b', 'c']))]).toEqual([['c', 3]])
    expect([...(await first.claim(['a']))]).toEqual([])
    await first.release(['a', 'c'])
    expect([...(await second.claim(['a', 'b', 'c']))]).toEqual([['a', 4]])
    await silence(rig.other, first, 2000)
    expect([...(await second.claim(['b']))]).toEqual([])
    await silence(rig.other, first, 2000)
    const rows = new Map((await second.beat()).map((row) => [row.name, row]))
    expect(rows.get('b')).toMatchObject({ epoch: 2, holder: first.holder, held: false })
    expect(rows.get('b')?.silent).toBeGreaterThan(3000)
    expect(rows.get('a')).toMatchObject({ epoch: 4, holder: second.holder, held: true })
    expect([...(await second.claim(['b']))]).toEqual([['b', 5]])
    expect((await first.beat()).filter(({ held }) => held)).toEqual([])
  })

  it('are kept by a beat, which waits for no transaction', async () => {
    await using rig = await pair()
    const { first, second, schema } = rig
    await first.claim(['a'])
    await silence(rig.other, first, 4000)
    const blocking = await (await sharedPostgres()).connect()
    await blocking.query(`SELECT pg_advisory_lock(hashtextextended('${schema}', 0))`)
    await first.beat()
    await blocking.end()
    expect([...(await second.claim(['a']))]).toEqual([])
  })

  it('are forgotten only by their holder, or when that is silent', async () => {
    await using rig = await pair()
    const { first, second } = rig
    await first.claim(['a', 'b'])
    await second.forget(['a'])
    await first.forget(['b'])
    expect((await first.beat()).map(({ name }) => name)).toEqual(['a'])
    await silence(rig.other, first, 4000)
    await second.forget(['a'])
    expect(await first.beat()).toEqual([])
  })

  it('fence what is recorded: what a relay records after it has lost the lease is refused, and nothing is stored', async () => {
    await using rig = await pair()
    const { first, second } = rig
    const journals = [rig.one, rig.other].map(({ sql }) => openJournal(sql, { targetsOf: () => ['a'] }))
    const [mine, theirs] = journals
    await mine?.append(delivery('1'))
    const epoch = (await first.claim(['a'])).get('a') ?? 0
    const refuse = () => Promise.reject(new Error('lost'))
    const fence = { statement: () => first.fence('a', epoch), refuse }
    const retry = { ...waiting, tries: 1 }
    await mine?.record(1, attempt('a', { at: 1 }), retry, fence)
    await silence(rig.other, first, 4000)
    // It may have been silent, but no other relay has taken the lease.
    await mine?.record(1, attempt('a', { at: 2 }), retry, fence)
    const taken = (await second.claim(['a'])).get('a') ?? 0
    await expect(mine?.record(1, attempt('a', { at: 3 }), succeeded, fence)).rejects.toThrow('lost')
    await expect(mine?.finish(1, 'a', succeeded, fence)).rejects.toThrow('lost')
    expect((await theirs?.attempts(1))?.map(({ at }) => at)).toEqual([1, 2])
    const successor = { statement: () => second.fence('a', taken), refuse }
    await theirs?.record(1, attempt('a', { at: 4 }), succeeded, successor)
    // An earlier epoch of the same relay is refused, too.
    await second.release(['a'])
    await second.claim(['a'])
    await expect(theirs?.record(1, attempt('a', { at: 5 }), succeeded, successor)).rejects.toThrow('lost')
    expect((await mine?.attempts(1))?.map(({ at }) => at)).toEqual([1, 2, 4])
    expect(await mine?.forwards(1)).toEqual({ a: succeeded })
  })

  it('let a relay end the connections of another, one of which may hold the lock of all writers', async () => {
    await using rig = await pair()
    const { first, second, schema } = rig
    const stopped = await (await sharedPostgres()).connect()
    const ended = new Promise<void>((resolve) => {
      stopped.on('error', () => {}).once('end', resolve)
    })
    await stopped.query(`SET application_name = 'relay ${first.holder}'`)
    await stopped.query(`SELECT pg_advisory_lock(hashtextextended('${schema}', 0))`)
    const written = rig.other.store.put('key', 1)
    await second.disconnect(first.holder)
    await written
    await ended
    // It continues with new connections.
    await expect.poll(() => first.beat().then((rows) => rows.length, String)).toBe(0)
    await expect.poll(() => rig.one.store.get('key').catch(String)).toBe(1)
  })
})

describeWith('postgres', 'the notices of a shared database', () => {
  it('name what another relay has changed, once for a batch, and nothing for what changed nothing', async () => {
    await using rig = await pair()
    const notices: Notice[] = []
    let listening = 0
    rig.second.listen({ onNotice: (notice) => notices.push(notice), onListening: () => listening++ })
    await rig.second.beat()
    const journal = openJournal(rig.one.sql, { targetsOf: () => ['a'] })
    const own = openJournal(rig.other.sql, { targetsOf: () => ['a'] })
    await Promise.all(['1', '2', '3'].map((id) => journal.append(delivery(id))))
    await own.append(delivery('own'))
    await journal.record(1, attempt('a'), succeeded)
    await journal.again(1, ['a'])
    await rig.one.store.put('key', 1)
    const withoutTargets = openJournal(rig.one.sql)
    await withoutTargets.append(delivery('2'))
    await withoutTargets.flush()
    await rig.first.claim(['x'])
    await rig.first.release(['x'])
    await expect.poll(() => notices.at(-1)).toEqual({ kind: 'leases' })
    const changes = notices.flatMap((notice) => (notice.kind === 'journal' ? [notice] : []))
    expect(changes.map(({ newest, words }) => ({ newest, words }))).toEqual([
      { newest: 3, words: [] },
      { newest: 4, words: ['1'] },
      { newest: 4, words: ['1+'] },
      { newest: 4, words: ['2+'] },
    ])
    expect(changes[0]?.bytes).toBeGreaterThan(3 * delivery('1').body.length)
    expect(listening).toBe(1)
    await rig.first.disconnect(rig.second.holder)
    await expect.poll(() => rig.second.beat().then(() => listening, String)).toBe(2)
    await journal.append(delivery('4'))
    await expect.poll(() => notices.at(-1)).toMatchObject({ newest: 5, words: [] })
  })

  it('say that anything may have changed, where it is too much to say', async () => {
    await using rig = await pair()
    const heard: Notice[] = []
    rig.second.listen({ onNotice: (notice) => heard.push(notice), onListening: () => {} })
    await rig.second.beat()
    const announce = Array.from({ length: 3000 }, (_, i) => String(i))
    await rig.one.sql.transaction([{ sql: `INSERT INTO kv (key, value) VALUES ('a', '1')`, values: [] }], {
      announce,
    })
    await expect.poll(() => heard).toMatchObject([{ kind: 'journal', newest: 0, words: undefined }])
    expect(await summariesOf(openJournal(rig.one.sql))).toEqual([])
  })
})
