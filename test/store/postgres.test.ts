import { EventEmitter, once } from 'node:events'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { openDatabase } from '../../src/store/open.js'
import { CONNECTIONS } from '../../src/store/postgres/health.js'
import { VERSION } from '../../src/store/schema.js'
import { backTo } from './earlier-schema.js'
import type { Step } from '../../src/store/sql.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'
import { sharedPostgres, startPostgres } from '../helpers/postgres.js'
import { delivery } from '../journal/rig.js'
import { openKind } from './kinds.js'

const WRITERS = 16
const EACH = 40

describeWith('postgres', 'a shared database', () => {
  it('numbers without gaps, and shows no number before all smaller ones, under 16 writers on connections of their own', async () => {
    const folder = emptyFolder()
    const databases = await Promise.all(Array.from({ length: WRITERS }, () => openKind('postgres', folder)))
    await using reader = await openKind('postgres', folder)
    const journal = openJournal(reader.sql)
    const seen: number[] = []
    const total = WRITERS * EACH
    const reading = (async () => {
      while (seen.length < total) {
        const found = await journal.after(seen.at(-1) ?? 0, 100)
        seen.push(...found.map(({ n }) => n))
      }
    })()
    const given = await Promise.all(
      databases.map(async ({ sql }, writer) => {
        const own = openJournal(sql)
        const receipts = []
        for (let i = 0; i < EACH; i += 4) {
          const some = [0, 1, 2, 3].map((j) => own.append(delivery(`${writer}-${i + j}`)))
          receipts.push(...(await Promise.all(some)))
        }
        return receipts.map(({ n }) => n)
      }),
    )
    await reading
    for (const database of databases) await database[Symbol.asyncDispose]()
    const all = Array.from({ length: total }, (_, i) => i + 1)
    expect(seen).toEqual(all)
    expect(given.flat().toSorted((one, other) => one - other)).toEqual(all)
  })

  it('takes a delivery that comes to several relays at once for one', async () => {
    const folder = emptyFolder()
    const databases = await Promise.all(Array.from({ length: 8 }, () => openKind('postgres', folder)))
    const journals = databases.map(({ sql }) => openJournal(sql, { targetsOf: () => ['a'] }))
    for (let i = 1; i <= 20; i++) {
      const receipts = await Promise.all(journals.map((journal) => journal.append(delivery(`${i}`))))
      expect(receipts.map(({ n }) => n)).toEqual(journals.map(() => i))
      expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    }
    for (const database of databases) await database[Symbol.asyncDispose]()
  })

  it('lets one of the relays that expect the same have its write', async () => {
    const folder = emptyFolder()
    const databases = await Promise.all(Array.from({ length: 8 }, () => openKind('postgres', folder)))
    const stored = await Promise.all(
      databases.flatMap(({ store }, i) => [0, 1, 2].map((j) => store.putIfAbsent('key', `${i} ${j}`))),
    )
    expect(stored.filter(Boolean)).toHaveLength(1)
    const countUp = async ({ store }: (typeof databases)[number]): Promise<void> => {
      for (;;) {
        const value = await store.get('n')
        const next = Number(value ?? 0) + 1
        if (await store.write([{ type: 'put', key: 'n', value: next }], [{ key: 'n', value }])) return
      }
    }
    await Promise.all([...databases, ...databases].map(countUp))
    expect(await databases[0]?.store.get('n')).toBe(16)
    for (const database of databases) await database[Symbol.asyncDispose]()
  })

  it('holds each profile in a schema of its own, also one whose name is too long for an identifier', async () => {
    const names = ['a', 'A', 'a.b-c_d', 'x'.repeat(63), 'x'.repeat(64)]
    const { store: kind } = await sharedPostgres()
    const folder = emptyFolder()
    for (const name of names) {
      await using database = await openDatabase({ kind, folder: `${folder}/${name}` })
      await database.store.put('key', name)
    }
    for (const name of names) {
      await using database = await openDatabase({ kind, folder: `${folder}/${name}` })
      expect(await database.store.get('key')).toBe(name)
    }
  })

  it('makes the schema once when many relays start at the same time', async () => {
    const folder = emptyFolder()
    const databases = await Promise.all(Array.from({ length: 10 }, () => openKind('postgres', folder)))
    expect(
      await Promise.all(databases.map(({ sql }) => sql.query('SELECT version FROM relay_schema'))),
    ).toEqual(databases.map(() => [{ version: VERSION }]))
    for (const database of databases) await database[Symbol.asyncDispose]()
  })

  it('changes the schema of an earlier relay, also under one that has its statements prepared', async () => {
    const folder = emptyFolder()
    await using running = await openKind('postgres', folder)
    const journal = openJournal(running.sql)
    await journal.append(delivery('1'))
    await running.sql.transaction(backTo(1).map((sql) => ({ sql })))
    await using later = await openKind('postgres', folder)
    expect(await later.sql.query('SELECT version FROM relay_schema')).toEqual([{ version: VERSION }])
    const both = await Promise.all([journal.after(0, 9), openJournal(later.sql).after(0, 9)])
    expect(both[0]).toEqual(both[1])
    expect(await journal.append(delivery('2'))).toMatchObject({ n: 2, duplicate: false })
  })

  it('changes the schema once when many relays of a later version start at the same time', async () => {
    const folder = emptyFolder()
    {
      await using earlier = await openKind('postgres', folder)
      await openJournal(earlier.sql).append(delivery('1'))
      await earlier.sql.transaction(backTo(1).map((sql) => ({ sql })))
      await earlier.sql.transaction([{ sql: 'UPDATE relay_schema SET oldest = 0' }])
    }
    const databases = await Promise.all(Array.from({ length: 10 }, () => openKind('postgres', folder)))
    const states = await Promise.all(
      databases.map(async ({ sql }) => [
        await sql.query('SELECT version, oldest FROM relay_schema'),
        (await openJournal(sql).after(0, 9)).length,
      ]),
    )
    expect(states).toEqual(databases.map(() => [[{ version: VERSION, oldest: 1 }], 1]))
    for (const database of databases) await database[Symbol.asyncDispose]()
  })

  it('is used next to a later relay as long as its schema allows that, and refused with the reason after', async () => {
    const folder = emptyFolder()
    await using later = await openKind('postgres', folder)
    const become = (version: number, oldest: number, ...changes: readonly string[]) =>
      later.sql.transaction(
        [...changes, `UPDATE relay_schema SET version = ${version}, oldest = ${oldest}`].map((sql) => ({
          sql,
        })),
      )
    // What a later version may do: add.
    await become(
      VERSION + 1,
      VERSION,
      'ALTER TABLE delivery ADD COLUMN later TEXT',
      'CREATE TABLE later (n BIGINT)',
    )
    {
      await using earlier = await openKind('postgres', folder)
      const journal = openJournal(earlier.sql, { targetsOf: () => ['a'] })
      expect(await journal.append(delivery('1'))).toMatchObject({ n: 1 })
      expect(await journal.after(0, 9)).toHaveLength(1)
      expect(await earlier.sql.query('SELECT version FROM relay_schema')).toEqual([{ version: VERSION + 1 }])
    }
    await become(VERSION + 2, VERSION + 1)
    const before = await later.sql.query('SELECT * FROM kv')
    await expect(openKind('postgres', folder)).rejects.toMatchObject({
      ...STORAGE,
      message: expect.stringMatching(/was written by a newer version of relay\. Update relay/),
    })
    expect(await later.sql.query('SELECT * FROM kv')).toEqual(before)
  })

  it('has no more connections than doctor says, and asks one thing at a time over each', async () => {
    const warned = vi.fn<() => void>()
    process.once('warning', warned)
    await using database = await openKind('postgres')
    const { sql, store } = database
    const { leases } = sql
    if (!leases) throw new Error('the database has no leases')
    const work = Array.from({ length: 200 }, (_, i) =>
      Promise.all([sql.query('SELECT pg_sleep(0.001)'), store.put(`key ${i}`, i), leases.beat()]),
    )
    await Promise.all(work)
    const ofRelay = 'SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = ?'
    expect(await sql.query(ofRelay, [`relay ${leases.holder}`])).toEqual([{ count: CONNECTIONS }])
    // As the driver does once of a statement that is asked before the one before it is answered.
    expect(warned).not.toHaveBeenCalled()
    process.off('warning', warned)
  })

  it('repeats nothing that was committed before a statement whose columns have changed', async () => {
    await using database = await openKind('postgres')
    const { sql } = database
    const change = (text: string) => sql.transaction([{ sql: text }])
    await change('CREATE TABLE added (n INT)')
    const read = { sql: 'SELECT * FROM added' }
    await sql.transaction([read])
    await change('ALTER TABLE added ADD COLUMN later TEXT')
    const results = await Promise.all([
      sql.transaction([{ sql: 'INSERT INTO added (n) VALUES (1)' }]),
      // Refused, so that each is sent by itself.
      sql.transaction([{ sql: 'SELECT 1 WHERE false', required: true }]),
      sql.transaction([read]),
    ])
    expect(results.map((rows) => rows?.length)).toEqual([1, undefined, 1])
    expect(await sql.query('SELECT n FROM added')).toEqual([{ n: 1 }])
  })

  it('sends what arrives together in one transaction, and changes nothing for a duplicate', async () => {
    await using database = await openKind('postgres')
    const { sql } = database
    const journal = openJournal(sql)
    await Promise.all(['1', '2', '3', '4'].map((id) => journal.append(delivery(id))))
    const transactions = await sql.query<{ xmin: string }>('SELECT DISTINCT xmin::text FROM delivery')
    expect(transactions).toHaveLength(1)
    const next = (): Promise<readonly { xid: string }[]> =>
      sql.query('SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xid')
    const before = await next()
    expect((await journal.append(delivery('1'))).duplicate).toBe(true)
    await journal.flush()
    const [row] = await sql.query('SELECT duplicates FROM delivery WHERE n = 1')
    expect(row).toEqual({ duplicates: 1 })
    // One for the count of duplicates, none for the delivery.
    expect(Number((await next())[0]?.xid) - Number(before[0]?.xid)).toBe(1)
  })
})

const STORAGE = { kind: 'storage' }

describeWith('postgres', 'a server that fails', () => {
  it('is answered with why and what to do, never with a password', async () => {
    const { store, port } = await sharedPostgres()
    const cases: readonly (readonly [SharedStore, RegExp])[] = [
      [new SharedStore(`postgres://relay@127.0.0.1:1/postgres`), /cannot be reached\. Start it/],
      [new SharedStore(`postgres://relay@127.0.0.1:${port}/postgres`), /needs a password\. Set PGPASSWORD/],
      [
        new SharedStore(`postgres://relay@127.0.0.1:${port}/nowhere`, store.secrets),
        /no database of that name/,
      ],
      [
        new SharedStore(`postgres://nobody@127.0.0.1:${port}/postgres`, store.secrets),
        /rejected the user or the password/,
      ],
    ]
    for (const [kind, reason] of cases) {
      const opened = openDatabase({ kind, folder: emptyFolder() })
      await expect(opened).rejects.toMatchObject({ ...STORAGE, message: expect.stringMatching(reason) })
    }
  })

  it('fails what is asked while it is away, and serves what is asked when it is back', async () => {
    await using server = await startPostgres()
    await using database = await openDatabase({ kind: server.store, folder: emptyFolder() })
    const { store, sql } = database
    await store.put('key', 1)
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
      await server.stop(signal)
      await expect(store.put('key', 2)).rejects.toMatchObject(STORAGE)
      await expect(store.get('key')).rejects.toMatchObject(STORAGE)
      await server.start()
      expect(await store.get('key')).toBe(1)
      await store.put('key', 1)
    }
    await server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'relay %'`,
    )
    // A connection may be ended only after something was sent over it: then it is not known whether that was done.
    await expect.poll(() => store.put('key', 3).then(() => 'stored', String)).toBe('stored')
    await expect.poll(() => store.get('key').catch(String)).toBe(3)
    expect(await sql.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('fails a write that waits too long for another relay, with the reason', async () => {
    const folder = emptyFolder()
    await using database = await openKind('postgres', folder)
    const other = await (await sharedPostgres()).connect()
    await other.query(`SELECT pg_advisory_lock(hashtextextended('relay_${path.basename(folder)}', 0))`)
    const began = performance.now()
    await expect(database.store.put('key', 1)).rejects.toMatchObject({
      ...STORAGE,
      message: expect.stringMatching(/another relay held it for too long/),
    })
    expect(performance.now() - began).toBeLessThan(4000)
    expect(await database.store.get('key')).toBeUndefined()
    await other.end()
    await database.store.put('key', 2)
    expect(await database.store.get('key')).toBe(2)
  })

  it('fails what is not answered in 4 s; what was sent is reported when it is done, and what was not is never done', async () => {
    await using database = await openKind('postgres')
    const { sql, store } = database
    const [[row] = []] = (await sql.transaction([{ sql: 'SELECT pg_backend_pid() AS pid' }])) ?? []
    const pid = Number(row?.['pid'])
    const put = (key: string): Step => ({
      sql: `INSERT INTO kv (key, value) VALUES (?, '1') RETURNING key`,
      values: [key],
    })
    process.kill(pid, 'SIGSTOP')
    const began = performance.now()
    const late = new EventEmitter()
    const reported = once(late, 'rows')
    const sent = sql.transaction([put('sent')], { onLate: (rows) => late.emit('rows', rows) })
    const failed = sent.catch((error: unknown) => error)
    await setImmediate()
    await setImmediate()
    const never = vi.fn<() => void>()
    await expect(sql.transaction([put('waiting')], { onLate: never })).rejects.toMatchObject({
      ...STORAGE,
      message: expect.stringMatching(/did not answer within 4 s/),
    })
    expect(performance.now() - began).toBeLessThan(5000)
    process.kill(pid, 'SIGCONT')
    expect(await failed).toMatchObject(STORAGE)
    expect(await reported).toEqual([[[{ key: 'sent' }]]])
    expect(await store.list('')).toEqual(['sent'])
    expect(never).not.toHaveBeenCalled()
  })
})
