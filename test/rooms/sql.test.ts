import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { loadSqlite } from '../../src/store/sqlite-library.js'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { databaseFile, databaseFiles, openDatabase } from '../../src/store/open.js'
import { openPostgres, type Postgres } from '../../src/store/postgres.js'
import { RelaySession } from '../../src/store/session.js'
import { Commits, fetchRows, execute, type Sql, type Tx } from '../../src/store/sql.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { database, PASSWORD } from '../kit/postgres.js'

function put(key: string, value: string) {
  return function* (): Tx<string> {
    yield* execute({ sql: 'INSERT INTO kv (key, value) VALUES (?, ?)', values: [key, value] })
    const [row] = yield* fetchRows<{ value: string }>('SELECT value FROM kv WHERE key = ?', key)
    return row?.value ?? 'nothing'
  }
}

const keys = async (sql: Sql): Promise<string[]> =>
  (await sql.query<{ key: string }>('SELECT key FROM kv ORDER BY key')).map(({ key }) => key)

/** One law for both: {@link Sql} says the same of them. */
async function fails(sql: Sql): Promise<void> {
  const defect = new Error('a bug')
  const throwing = function* (): Tx<never> {
    yield* execute({ sql: `INSERT INTO kv (key, value) VALUES ('lost', '')`, values: [] })
    throw defect
  }
  const refused = function* (): Tx<never> {
    yield* fetchRows('INSERT INTO kv (key, value) VALUES (?, ?)', 'lost-too', '')
    throw new RelayError('bad_request', 'No')
  }
  const all = [put('a', '1'), throwing, put('b', '2'), refused, put('c', '\0')]
  const ends = await Promise.allSettled(all.map((work) => sql.write<string>(work)))
  expect(ends.map((end) => (end.status === 'fulfilled' ? end.value : Object(end.reason).message))).toEqual([
    '1',
    expect.any(String),
    '2',
    'No',
    '\u{fffd}',
  ])
  expect(ends[1]).toMatchObject({ reason: expect.any(RelayError) })
  expect(ends[3]).toMatchObject({ reason: { kind: 'bad_request' } })
  expect(await keys(sql)).toEqual(['a', 'b', 'c'])
}

describe('commits', () => {
  const nothing = () => execute()

  it('of transactions that may wait are shared, however these arrive, and the others wait for none', async () => {
    const batches: number[] = []
    const commits: Commits = new Commits(
      async (batch) => {
        batches.push(batch.length)
        return batch.map(() => undefined)
      },
      () => false,
    )
    const lazy: Promise<void>[] = []
    // Each arrives in a turn of its own, after a commit has begun.
    await commits.add(nothing)
    for (let i = 0; i < 40; i++) {
      lazy.push(commits.add(nothing, { isLazy: true }))
      await setImmediate()
      if (i === 36) await commits.add(nothing)
    }
    await Promise.all(lazy)
    expect(batches).toEqual([1, 16, 16, 6, 3])
    const last = [0, 1].map(() => commits.add(nothing, { isLazy: true }))
    await commits.end()
    await Promise.all(last)
    expect(batches.slice(5)).toEqual([2])
  })
})

describe('a file', () => {
  it('has transactions that arrive together share a commit, and one that throws fails alone', async () => {
    const folder = emptyFolder()
    await using opened = await openDatabase({ kind: 'file', folder })
    const { sql } = opened
    const pages = (): number => statSync(`${databaseFile(folder)}-wal`).size
    const cost = async (work: () => Promise<unknown>): Promise<number> => {
      const before = pages()
      await work()
      return pages() - before
    }
    await sql.write(put('first', ''))
    const alone = await cost(() => sql.write(put('alone', '')))
    const together = await cost(() =>
      Promise.all(Array.from({ length: 40 }, (_, i) => sql.write(put(`${i}`, '')))),
    )
    // Each commit writes every page that it changed into the log.
    expect(together).toBeLessThanOrEqual(2 * alone)
    await sql.write(() => execute({ sql: 'DELETE FROM kv', values: [] }))
    await fails(sql)
  })

  it('stores empty bytes as bytes, however they are made', async () => {
    await using sql = await openSqlite(':memory:')
    const all = [
      new Uint8Array(),
      new Uint8Array(new ArrayBuffer(0)),
      Buffer.alloc(0),
      Buffer.from('a').subarray(1),
    ]
    const kinds = await Promise.all(all.map((bytes) => sql.query('SELECT typeof(?) AS type', [bytes])))
    expect(kinds.flat()).toEqual(all.map(() => ({ type: 'blob' })))
  })

  it('and the folders that are made for it are for their owner alone', async () => {
    const folder = path.join(emptyFolder(), 'a', 'b')
    await using opened = await openDatabase({ kind: 'file', folder })
    await opened.store.put('key', 1)
    const made = [path.dirname(folder), folder, ...databaseFiles(folder)]
    const modes = made.map((file) => (statSync(file).mode & 0o777).toString(8))
    expect(modes).toEqual(['700', '700', '600', '600', '600'])
  })

  it('that another process writes to is read at once, and written once that has ended', async () => {
    const folder = emptyFolder()
    await using opened = await openDatabase({ kind: 'file', folder })
    const other = new (loadSqlite().DatabaseSync)(databaseFile(folder))
    other.exec('BEGIN IMMEDIATE')
    const writing = opened.store.put('key', 1)
    expect(await opened.store.get('key')).toBeUndefined()
    other.exec('COMMIT')
    other.close()
    await writing
    expect(await opened.store.get('key')).toBe(1)
  })

  it('is written by nothing else during a transaction, also while that has only read', async () => {
    const folder = emptyFolder()
    await using opened = await openDatabase({ kind: 'file', folder })
    using other = new (loadSqlite().DatabaseSync)(databaseFile(folder), { timeout: 0 })
    const meanwhile = await opened.sql.write(function* (): Tx<unknown> {
      yield* fetchRows('SELECT key FROM kv')
      try {
        return other.exec(`INSERT INTO kv (key, value) VALUES ('meanwhile', '')`)
      } catch (error) {
        return error
      }
    })
    expect(meanwhile).toMatchObject({ message: 'database is locked' })
    expect(await keys(opened.sql)).toEqual([])
  })

  it('finishes the writes under way before it closes, and can be open twice', async () => {
    const folder = emptyFolder()
    const closing = await openDatabase({ kind: 'file', folder })
    const writes = [closing.store.put('a', 1), closing.store.put('b', 2)]
    await closing[Symbol.asyncDispose]()
    await Promise.all(writes)
    await using one = await openDatabase({ kind: 'file', folder })
    await using two = await openDatabase({ kind: 'file', folder })
    expect([await one.store.get('a'), await two.store.get('b')]).toEqual([1, 2])
    expect(await count(one.sql, two.sql)).toEqual([{ value: '60' }])
  })

  const versioned = (version: number): string =>
    `PRAGMA application_id = 0x72656c79; CREATE TABLE relay_schema (version INTEGER); INSERT INTO relay_schema VALUES (${version})`
  const EARLIER = 'by an earlier version of relay, which this one cannot read. It is unchanged'

  it.each([
    ['another program', 'CREATE TABLE notes (text)', 'storage', 'it belongs to another program'],
    ['an earlier relay', versioned(5), 'settings', EARLIER],
    ['a later relay', versioned(99), 'settings', 'was written by a newer version of relay'],
  ])('of %s is refused, and not a byte of it changes', async (_, statements, kind, why) => {
    const folder = emptyFolder()
    const other = new (loadSqlite().DatabaseSync)(databaseFile(folder))
    other.exec(statements)
    other.close()
    const before = readFileSync(databaseFile(folder))
    const opening = openDatabase({ kind: 'file', folder })
    await expect(opening).rejects.toMatchObject({ kind, message: expect.stringContaining(why) })
    expect(readFileSync(databaseFile(folder)).equals(before)).toBe(true)
    expect(databaseFiles(folder).map((file) => existsSync(file))).toEqual([true, false, false])
  })

  it('that is empty is taken; one that is damaged, or no file, is said to be so', async () => {
    const folder = emptyFolder()
    writeFileSync(databaseFile(folder), '', { mode: 0o600 })
    await (await openDatabase({ kind: 'file', folder }))[Symbol.asyncDispose]()
    const damaged = path.join(emptyFolder(), 'relay.db')
    writeFileSync(damaged, 'no database'.repeat(1000))
    await expect(openSqlite(damaged)).rejects.toThrow(
      `it is damaged. Save what can be read with SQLite's own tool`,
    )
    mkdirSync(path.join(folder, 'sub'))
    await expect(openSqlite(path.join(folder, 'sub'))).rejects.toMatchObject({ kind: 'storage' })
  })
})

/** The number that a transaction adds one to. */
function* increment(): Tx<void> {
  const [row] = yield* fetchRows<{ value: string }>(`SELECT value FROM kv WHERE key = 'n'`)
  const next = `${Number(row?.value) + 1}`
  yield* execute({ sql: `UPDATE kv SET value = ? WHERE key = 'n'`, values: [next] })
}

/** What 60 increments come to that two connections to one database make at once. */
async function count(one: Sql, two: Sql): Promise<unknown> {
  await one.write(put('n', '0'))
  await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? one : two).write(increment)))
  return two.query(`SELECT value FROM kv WHERE key = 'n'`)
}

describeWith('postgres', 'a database on PostgreSQL', () => {
  const open = async (address: string): Promise<Postgres> => {
    const store = new SharedStore(address, { password: new Secret(PASSWORD) })
    return openPostgres({ store, profile: 'default' })
  }

  it('fails one transaction alone, and loses no write of two relays', async () => {
    await using server = await database()
    await using sql = await open(server.store)
    await fails(sql)
    await using other = await open(server.store)
    expect(await count(sql, other)).toEqual([{ value: '60' }])
  })

  it('lets one of two relays run, and the other when that one is gone', async () => {
    await using server = await database()
    await using sql = await open(server.store)
    await using otherSql = await open(server.store)
    /** When the earlier of the last heartbeats of both began: they alone hold locks. */
    const lastBeat = async (): Promise<number> => {
      const beats = 'pg_stat_activity JOIN pg_locks USING (pid)'
      const ours = `locktype = 'advisory' AND datname = current_database()`
      const { rows } = await server.run(`SELECT min(query_start) AS at FROM ${beats} WHERE ${ours}`)
      return rows[0].at.getTime()
    }
    const heard: string[] = []
    const listener = (name: string) => ({
      onNotice: (numbers: readonly number[] | undefined) => heard.push(`${name} ${numbers?.join()}`),
      onRun: (holds: boolean) => heard.push(`${name} ${holds ? 'runs' : 'waits'}`),
      onAway: (error: RelayError | undefined) => heard.push(`${name} ${error ? 'away' : 'back'}`),
    })
    const one = new RelaySession(sql, 'routes', listener('one'))
    await using two = new RelaySession(otherSql, 'routes', listener('two'))
    await one.start()
    one.want()
    await expect.poll(() => one.holds).toBe(true)
    await two.start()
    two.want()
    await expect.poll(() => heard).toContain('two waits')
    const alike = { count: 1, isDifferent: false }
    expect([await one.others(), await two.others()]).toEqual([alike, alike])
    expect(await two.others('other routes')).toMatchObject({ isDifferent: true })
    await sql.write(put('key', ''), { announces: [7, 8] })
    await sql.write(() => fetchRows('SELECT 1 AS nothing'), { announces: [9] })
    await expect.poll(() => heard).toContain('two 7,8')
    // The database is on this machine.
    const now = Date.now()
    await expect.poll(lastBeat).toBeGreaterThan(now)
    expect([one.holds, two.holds]).toEqual([true, false])
    await one[Symbol.asyncDispose]()
    await expect.poll(() => two.holds).toBe(true)
    expect(await two.others()).toEqual({ count: 0, isDifferent: false })
    await two.changeRoutes('other routes')
    expect(await two.others()).toEqual({ count: 0, isDifferent: false })
    expect(heard).toEqual(['one runs', 'two waits', 'two 7,8', 'two runs'])
    // The server ends the session: it has to be taken again.
    await server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    await expect.poll(() => heard.slice(4)).toEqual(['two away', 'two back', 'two undefined'])
    expect(two.holds).toBe(true)
    await two.release()
    expect(two.holds).toBe(false)
  })
})
