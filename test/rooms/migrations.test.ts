import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { loadSqlite } from '../../src/store/sqlite-library.js'
import { describe, expect, it } from 'vitest'
import type { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { JournalQueries } from '../../src/journal/read.js'
import { databaseFile, databaseFiles, openDatabase } from '../../src/store/open.js'
import { openPostgres } from '../../src/store/postgres.js'
import { currentVersion, type Migration, MIGRATIONS } from '../../src/store/schema.js'
import { RelaySession } from '../../src/store/session.js'
import { fetchRows, execute, type Sql, type Tx } from '../../src/store/sql.js'
import { keptDisk } from '../kit/disk.js'
import { emptyFolder } from '../kit/folder.js'
import { fill, NOW } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place, REPO } from '../kit/place.js'
import { database, type Database as Server, KEY, PASSWORD } from '../kit/postgres.js'
import { laterVersion } from './next-version.js'

const FIRST = currentVersion()
const DELIVERIES = 25

/** A profile of this version with something in each table. */
async function filledPlace(RELAY_PROFILE = 'default'): Promise<Place & { readonly folder: string }> {
  const here = await place({ host: 'none', env: { RELAY_PROFILE } })
  await fill(
    here,
    Array.from({ length: DELIVERIES }, (_, i) => ({
      id: `delivery-${i + 1}`,
      receivedAt: Date.now(),
      forwards: {
        '*=http://localhost:1': { attempts: [{}] },
        'push=exec:./waits': { status: 'waiting' as const },
        'push=exec:./fails': {
          status: 'failed' as const,
          attempts: [{ outcome: 'refused' as const, status: 1 }],
        },
      },
    })),
  )
  const folder = path.join(here.home, RELAY_PROFILE)
  await using opened = await openDatabase({ kind: 'file', folder })
  await opened.store.put('canary:1', { secret: 'canary' })
  return Object.assign(here, { folder })
}

/** All rows of each table of the first version, without what a migration adds to them; of records those that a start leaves alone. */
const TABLES: Readonly<Record<string, string>> = {
  kv: `SELECT * FROM kv WHERE key LIKE 'canary:%'`,
  delivery: `SELECT n, key, received_at, source, scheme, verified, event, repo, number, ref, delivery_id, hook_id, restored, headers, size,
    duplicates, ignored_by FROM delivery ORDER BY n`,
  body: 'SELECT * FROM body ORDER BY n',
  forward: 'SELECT * FROM forward ORDER BY n, target',
  attempt: 'SELECT * FROM attempt ORDER BY n, seq',
  removed: 'SELECT * FROM removed',
  target: 'SELECT * FROM target ORDER BY target',
}

async function rowsOf(sql: Sql): Promise<unknown> {
  const tables = Object.entries(TABLES).map(async ([name, query]) => [name, await sql.query(query)] as const)
  return Object.fromEntries(await Promise.all(tables))
}

/** What the migrations of the next version make. */
async function additionsOf(sql: Sql): Promise<unknown> {
  const labels = await sql.query('SELECT n, label FROM delivery ORDER BY n')
  return { labels, notes: await sql.query('SELECT n, text, raw FROM note ORDER BY n') }
}
const numbers = Array.from({ length: DELIVERIES }, (_, i) => i + 1)
const ADDITIONS = {
  labels: numbers.map((n) => ({ n, label: `delivery-${n}?` })),
  notes: numbers.map((n) => ({ n, text: `delivery-${n}?`, raw: null })),
}

async function read<Result>(folder: string, look: (sql: Sql) => Promise<Result>): Promise<Result> {
  await using opened = await openDatabase({ kind: 'file', folder })
  return await look(opened.sql)
}

const copiesOf = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => name.startsWith('relay.db.'))

function structureOf(folder: string): unknown {
  using opened = new (loadSqlite().DatabaseSync)(databaseFile(folder), { readOnly: true })
  const objects = opened
    .prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name')
    .all()
  // SQLite adds a column to the text of its table as it was given.
  return JSON.parse(JSON.stringify(objects).replaceAll(/\s+/g, ' '))
}

/** Starts `relay serve` and stops it: what it said. */
async function served(here: Place): Promise<string> {
  await using relay = await here.serve()
  await relay.stop()
  return relay.err
}

/** Makes this process the relay of version 11, which counted the deliveries of each minute, until it is disposed of. */
function versionBefore(): Disposable {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a list of this program's own, which an earlier version has shorter
  const list = MIGRATIONS as Migration[]
  const later = list.splice(0)
  return { [Symbol.dispose]: () => void list.push(...later) }
}

/** Some deliveries, of which the first were removed, and their count as version 11 has it. */
function* counted(): Tx<void> {
  for (const n of [4, 5, 6]) {
    const columns =
      'n, key, received_at, source, scheme, verified, event, delivery_id, hook_id, headers, size'
    const values = [n, `key-${n}`, NOW, 'github', 'github', 'current', 'push', `${n}`, '42', '[]', 3]
    yield* fetchRows(
      `INSERT INTO delivery (${columns}) VALUES (${values.map(() => '?').join(', ')})`,
      ...values,
    )
  }
  const minute = Math.floor(NOW / 60_000)
  yield* fetchRows('INSERT INTO minute (minute, received, failed) VALUES (?, 3, 0)', minute)
}

const COUNTS = { count: 3, minutes: [{ minute: Math.floor(NOW / 60_000), received: 3, failed: 0 }] }

async function countsOf(sql: Sql): Promise<unknown> {
  const journal = new JournalQueries(sql)
  return { count: await journal.count(), minutes: await journal.minutes(0, NOW + 60_000) }
}

describe('the first migration', () => {
  it('counts what version 11 had counted', async () => {
    const folder = emptyFolder()
    {
      using _ = versionBefore()
      await read(folder, (sql) => sql.write(counted))
    }
    await using opened = await openDatabase({ kind: 'file', folder, migrate: true })
    expect(await countsOf(opened.sql)).toEqual(COUNTS)
    await expect(opened.sql.query('SELECT * FROM minute')).rejects.toThrow('no such table')
  })
})

describeWith('postgres', 'on PostgreSQL, the first migration', () => {
  it('counts what version 11 had counted', async () => {
    await using server = await database()
    const keys = { current: new Secret(KEY), previous: undefined }
    const kind = new SharedStore(server.store, { password: new Secret(PASSWORD), keys })
    const folder = path.join(emptyFolder(), 'default')
    {
      using _ = versionBefore()
      await using opened = await openDatabase({ kind, folder })
      await opened.sql.write(counted)
    }
    await using opened = await openDatabase({ kind, folder, migrate: true })
    expect(await countsOf(opened.sql)).toEqual(COUNTS)
    await expect(opened.sql.query('SELECT * FROM minute')).rejects.toThrow('42P01')
  })
})

describe('a start of the next version', () => {
  it('keeps every row, has the structure of new data, and a copy until the start after it', async () => {
    await using here = await filledPlace()
    const { folder } = here
    const before = await read(folder, rowsOf)
    const copy = `relay.db.version-${FIRST}`
    {
      using _ = laterVersion()
      expect(await served(here)).toContain(`from version ${FIRST} to ${FIRST + 2}. ${copy} keeps what it was`)
      expect(await read(folder, rowsOf)).toEqual(before)
      expect(await read(folder, additionsOf)).toEqual(ADDITIONS)
      const made = emptyFolder()
      await read(made, rowsOf)
      expect(structureOf(folder)).toEqual(structureOf(made))
    }
    expect(copiesOf(folder)).toEqual([copy])
    expect(statSync(path.join(folder, copy)).mode & 0o777).toBe(0o600)
    // For who wants to go back.
    const back = emptyFolder()
    cpSync(path.join(folder, copy), databaseFile(back))
    expect(await read(back, rowsOf)).toEqual(before)

    using _ = laterVersion()
    expect(await served(here)).not.toContain('from version')
    expect(copiesOf(folder)).toEqual([])
    expect(await read(folder, rowsOf)).toEqual(before)
  })

  it('has its copy removed with the profile', async () => {
    await using here = await filledPlace()
    using _ = laterVersion()
    await served(here)
    expect(copiesOf(here.folder)).toHaveLength(1)
    expect(await here.run('reset', '--yes', '--local')).toMatchObject({ code: 0 })
    expect(existsSync(here.folder)).toBe(false)
  })

  it('keeps the hooks that it is asked for', async () => {
    await using here = await place({ signedIn: true })
    await served(here)
    using _ = laterVersion()
    await using relay = await here.serve('--hook', REPO)
    await relay.says(`from version ${FIRST} to ${FIRST + 2}`)
    await relay.says(/octo\/demo.*hook|hook.*octo\/demo/)
    expect((await here.run('hook', 'list')).out).toContain(REPO)
  })

  it('leaves all as it was where a migration fails', async () => {
    const fails: Migration = function* () {
      yield* execute({ sql: 'DELETE FROM delivery', values: [] })
      yield* execute({ sql: 'ALTER TABLE missing ADD COLUMN more TEXT', values: [] })
    }
    await using here = await filledPlace()
    const { folder } = here
    const before = await read(folder, rowsOf)
    {
      using _ = laterVersion([fails])
      const { code, err } = await here.run('serve', '--port', '0')
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('no such table: missing') })
    }
    expect(copiesOf(folder)).toEqual([])
    expect(await read(folder, rowsOf)).toEqual(before)
  })

  it('replaces a table without losing what refers to its rows', async () => {
    const replaces: Migration = function* () {
      for (const sql of [
        'CREATE TABLE other AS SELECT * FROM delivery WHERE 0',
        'INSERT INTO other SELECT * FROM delivery',
        'DROP TABLE delivery',
        'CREATE TABLE delivery (n INTEGER PRIMARY KEY, received_at BIGINT NOT NULL)',
        'INSERT INTO delivery SELECT n, received_at FROM other',
        'DROP TABLE other',
      ])
        yield* execute({ sql, values: [] })
    }
    await using here = await filledPlace()
    const { body, forward, attempt } = Object(await read(here.folder, rowsOf))
    using _ = laterVersion([replaces])
    const options = { kind: 'file', folder: here.folder, migrate: true } as const
    await using opened = await openDatabase(options)
    const rows = async (name: string): Promise<unknown> => opened.sql.query(TABLES[name] ?? '')
    expect([await rows('body'), await rows('forward'), await rows('attempt')]).toEqual([
      body,
      forward,
      attempt,
    ])
    // It still goes with its delivery.
    await opened.sql.write(() => execute({ sql: 'DELETE FROM delivery WHERE n = 1', values: [] }))
    expect(await opened.sql.query('SELECT n FROM body WHERE n = 1')).toEqual([])
  })
})

describe('a command of the next version that does not serve', () => {
  const COMMANDS = [
    ['log'],
    ['log', '--follow'],
    ['show', '1'],
    ['replay', '--last', '1', '--to', 'http://127.0.0.1:9'],
    ['wait', 'push', '--timeout', '1s'],
    ['token'],
    ['whoami'],
    ['login', '--with-token'],
    ['revoke'],
    ['reset', '--yes'],
    ['source', 'list'],
    ['source', 'add', 'stripe'],
    ['source', 'remove', 'stripe'],
    ['setup', '--yes'],
    ['hook', 'list'],
    ['routes'],
  ]

  it.each([
    ['default', false, 'relay serve,'],
    ['work', false, 'relay serve --profile work,'],
    ['sandbox', true, 'relay serve --sandbox,'],
    ['try', true, 'relay serve --sandbox --profile try,'],
  ])('changes nothing in the profile %s (a sandbox: %s), and names %s', async (profile, sandbox, command) => {
    await using here = await filledPlace(profile)
    const saved = { v: 1, store: 'file', provider: 'gitea', providerUrl: 'http://127.0.0.1:9', sandbox }
    writeFileSync(path.join(here.folder, 'profile.json'), JSON.stringify(saved))
    const files = (): unknown =>
      databaseFiles(here.folder).map((file) => existsSync(file) && readFileSync(file).toString('base64'))
    const before = files()
    using _ = laterVersion()
    const wrong: unknown[] = []
    for (const argv of COMMANDS) {
      const env = { RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: 'http://127.0.0.1:9' }
      const { code, err } = await here.runWith({ stdin: 'secret', env }, ...argv)
      if (code !== 2 || !err.includes(`Start ${command} which brings it to this version`))
        wrong.push({ argv, code, err })
    }
    expect(wrong).toEqual([])
    const { out } = await here.run('doctor')
    expect(out).toMatch(
      new RegExp(`Start ${command} which brings it to .*\\n +fix: ${command.slice(0, -1)}\\n`),
    )
    expect(files()).toEqual(before)
  })
})

describeWith(
  ['Linux', 'mount'],
  'a start of the next version on a disk with too little room for a copy',
  () => {
    it('says how much it needs, and changes nothing', async () => {
      await using disk = await keptDisk(16)
      await using here = await filledPlace()
      const { folder } = here
      cpSync(here.home, disk.seen, { recursive: true })
      const before = await read(folder, rowsOf)
      const env = { ...process.env, ...here.env, RELAY_HOME: disk.folder }
      const [command = '', ...args] = [...disk.wrapper, process.execPath, ...NEXT_RELAY]
      const program = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      const [[code], err] = await Promise.all([once(program, 'exit'), text(program.stderr)])
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(
          /a copy of what it was needs 1[67] MiB\. Free some space; nothing was changed"\}\n$/,
        ),
      })
      const after = emptyFolder()
      cpSync(path.join(disk.seen, 'default'), after, { recursive: true })
      expect(copiesOf(after)).toEqual([])
      expect(await read(after, rowsOf)).toEqual(before)
    })
  },
)

/** What writes nothing once the data is of a later version than the program: that of a process which began before. */
async function writeRefused(sql: Sql): Promise<unknown> {
  const values = ['lost', '']
  const write = sql.write(() => execute({ sql: 'INSERT INTO kv (key, value) VALUES (?, ?)', values }))
  const refusal: unknown = await write.catch((error: unknown) => error)
  return { refusal, lost: await sql.query(`SELECT key FROM kv WHERE key = 'lost'`) }
}
const REFUSED = {
  refusal: expect.objectContaining({
    kind: 'storage',
    message: expect.stringContaining('a newer version of relay has changed it meanwhile. Stop this'),
  }),
  lost: [],
}

describe('a process of the earlier version', () => {
  it('writes nothing into data that was migrated meanwhile', async () => {
    const folder = emptyFolder()
    await using earlier = await openDatabase({ kind: 'file', folder })
    await earlier.store.put('before', 1)
    {
      using _ = laterVersion()
      await (await openDatabase({ kind: 'file', folder, migrate: true }))[Symbol.asyncDispose]()
    }
    expect(await writeRefused(earlier.sql)).toEqual(REFUSED)
  })
})

const NEXT_RELAY = ['--import', 'tsx', 'test/rooms/next-relay.ts', 'serve', '--port', '0', '--json']

/** `relay serve` of the next version in a process of its own. */
function nextRelay(here: Place, env: Readonly<Record<string, string>>) {
  return spawn(process.execPath, NEXT_RELAY, {
    env: { ...process.env, ...here.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

describe('a start of the next version that is killed', () => {
  /** A column; a page of rows, each of them, and the page after it; an index. */
  const OF_FIRST = 1 + 1 + DELIVERIES + 1 + 1
  const PLACES = [1, 2, 3, 15, OF_FIRST - 1, OF_FIRST, OF_FIRST + 1, OF_FIRST + 2]

  it.each(PLACES)('at statement %i loses nothing, and the next one finishes it', async (at) => {
    await using here = await filledPlace()
    const { folder } = here
    const before = await read(folder, rowsOf)
    // What one that was killed while it made the copy left.
    for (const end of ['', '-journal'])
      writeFileSync(`${databaseFile(folder)}.version-${FIRST}.draft${end}`, 'half a copy')
    const program = nextRelay(here, { KILL_AT: `${at}` })
    // One that is not killed would run for ever.
    program.stdout.once('data', () => program.kill('SIGTERM'))
    const [[, signal], err] = await Promise.all([once(program, 'exit'), text(program.stderr)])
    expect({ signal, err }).toMatchObject({ signal: 'SIGKILL' })
    // Where the first of the two is not finished, the earlier relay goes on with its data.
    using killed = new (loadSqlite().DatabaseSync)(databaseFile(folder))
    const version = at <= OF_FIRST ? FIRST : FIRST + 1
    expect(killed.prepare('SELECT version FROM relay_schema').get()).toEqual({ version })
    killed.close()
    using _ = laterVersion()
    await served(here)
    expect(await read(folder, rowsOf)).toEqual(before)
    expect(await read(folder, additionsOf)).toEqual(ADDITIONS)
  })
})

describeWith('postgres', 'on PostgreSQL, a start of the next version', () => {
  const storeOf = (server: Server): SharedStore =>
    new SharedStore(server.store, {
      password: new Secret(PASSWORD),
      keys: { current: new Secret(KEY), previous: undefined },
    })
  const folder = path.join(emptyFolder(), 'default')
  /** A database with some deliveries, whose rows need no relay. */
  const filled = async (server: Server): Promise<SharedStore> => {
    const kind = storeOf(server)
    await using opened = await openDatabase({ kind, folder })
    await opened.store.put('canary:1', { secret: 'canary' })
    await opened.sql.write(function* () {
      for (const n of numbers) {
        const values = [
          n,
          `key-${n}`,
          NOW,
          'github',
          'github',
          'current',
          'push',
          `delivery-${n}`,
          '42',
          '[]',
          3,
        ]
        const columns =
          'n, key, received_at, source, scheme, verified, event, delivery_id, hook_id, headers, size'
        const sql = `INSERT INTO delivery (${columns}) VALUES (${values.map(() => '?').join(', ')})`
        yield* execute({ sql, values })
        const bytes = Uint8Array.of(0, 255, n)
        yield* execute({ sql: 'INSERT INTO body (n, bytes) VALUES (?, ?)', values: [n, bytes] })
      }
    })
    return kind
  }
  const migrate = async (kind: SharedStore, onSlow = (_text: string): void => {}): Promise<void> => {
    await (await openDatabase({ kind, folder, migrate: true, onSlow }))[Symbol.asyncDispose]()
  }
  const look = async <Result>(kind: SharedStore, of: (sql: Sql) => Promise<Result>): Promise<Result> => {
    await using opened = await openDatabase({ kind, folder })
    return await of(opened.sql)
  }
  const listener = { onNotice() {}, onRun() {}, onAway() {} }

  it('keeps every row, has the structure of new data, and is refused by a command that does not serve', async () => {
    await using server = await database()
    const kind = await filled(server)
    const before = await look(kind, rowsOf)
    const dump = await server.dump()
    using _ = laterVersion()
    await expect(look(kind, rowsOf)).rejects.toMatchObject({
      kind: 'settings',
      message: expect.stringContaining(
        'Start relay serve --profile default, which brings it to this version',
      ),
    })
    expect(await server.dump()).toBe(dump)
    await migrate(kind)
    expect(await look(kind, rowsOf)).toEqual(before)
    expect(await look(kind, additionsOf)).toEqual(ADDITIONS)
    await using other = await database()
    await migrate(storeOf(other))
    const structure = async ({ run }: Server): Promise<unknown> => {
      const columns = `SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'relay_default' ORDER BY 1, ordinal_position`
      const indexes = `SELECT indexdef FROM pg_indexes WHERE schemaname = 'relay_default' ORDER BY 1`
      return [(await run(columns)).rows, (await run(indexes)).rows]
    }
    expect(await structure(server)).toEqual(await structure(other))
  })

  it('is refused while relays of the earlier version run, and those write nothing after it', async () => {
    await using server = await database()
    const kind = await filled(server)
    const earlier = await openPostgres({ store: kind, profile: 'default' })
    const session = new RelaySession(earlier, 'routes', listener)
    await session.start()
    const dump = await server.dump()
    {
      using _ = laterVersion()
      const why = 'relays of that version run on it. It is unchanged. Stop them all'
      await expect(migrate(kind)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringContaining(why),
      })
      expect(await server.dump()).toBe(dump)
      await session[Symbol.asyncDispose]()
      await expect
        .poll(() =>
          migrate(kind).then(
            () => 'migrated',
            ({ kind: is }: RelayError) => is,
          ),
        )
        .toBe('migrated')
    }
    // As one that a break cut off, or that stood still.
    expect(await writeRefused(earlier)).toEqual(REFUSED)
    const again = new RelaySession(earlier, 'routes', listener)
    await expect(again.start()).rejects.toThrow('a newer version of relay has changed it meanwhile')
    await again[Symbol.asyncDispose]()
    await earlier[Symbol.asyncDispose]()
  })

  it('waits while another relay does it, and leaves all as it was where that is killed', async () => {
    await using server = await database()
    const kind = await filled(server)
    const before = await look(kind, rowsOf)
    let reached = (): void => {}
    const isReached = new Promise<void>((resolve) => (reached = resolve))
    const stands: Migration = function* () {
      yield* execute({ sql: 'DELETE FROM body', values: [] })
      reached()
      yield* fetchRows('SELECT pg_sleep(600)')
    }
    {
      using _ = laterVersion([stands])
      const outcome = (work: Promise<void>): Promise<string> =>
        work.then(
          () => 'migrated',
          ({ kind: is }: RelayError) => is,
        )
      const killed = outcome(migrate(kind))
      await isReached
      const waits = outcome(migrate(kind))
      const asleep = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`
      const end = async (): Promise<number> =>
        (await server.run(`SELECT pg_terminate_backend(pid) FROM (${asleep}) AS sleeping`)).rowCount ?? 0
      await expect.poll(end).toBe(1)
      expect(await killed).toBe('storage')
      // The other one takes its turn.
      await expect.poll(end).toBe(1)
      expect(await waits).toBe('storage')
    }
    expect(await look(kind, rowsOf)).toEqual(before)
  })
})
