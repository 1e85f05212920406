import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { Secret } from '../../../../src/base/secret.js'
import { SharedStore } from '../../../../src/base/shared-store.js'
import { openDatabase } from '../../../../src/store/open.js'
import { VERSION } from '../../../../src/store/schema.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'
import { describeWith } from '../../../kit/needs.js'
import {
  KEY,
  PASSWORD,
  type PostgresServer,
  sharedPostgres,
  startPostgres,
} from '../../../helpers/postgres.js'
import { finding, findings } from './rig.js'

const OTHER = randomBytes(32).toString('base64')
const MAY_CREATE = 'GRANT CREATE ON DATABASE postgres TO $user'

/** A context of a profile in this store, which has data unless `create` is false. */
async function profile(store: SharedStore, more: Readonly<Record<string, string>> = {}, create = true) {
  const home = emptyFolder()
  const name = path.basename(home)
  if (create) await (await openDatabase({ kind: store, folder: `${home}/${name}` }))[Symbol.asyncDispose]()
  const env = {
    RELAY_HOME: home,
    RELAY_PROFILE: name,
    RELAY_STORE: String(store),
    RELAY_TOKEN_KEY: KEY.reveal(),
    PGPASSWORD: PASSWORD,
    ...more,
  }
  return { ...testContext({ env }), name, folder: `${home}/${name}`, env }
}

/** The same profile with other variables. */
const withEnv = async (given: { env: Record<string, string> }, more: Record<string, string>) =>
  testContext({ env: { ...given.env, ...more } })

async function setUp(server: PostgresServer, ...settings: readonly string[]): Promise<void> {
  for (const sql of [...settings, 'SELECT pg_reload_conf()']) await server.run(sql)
}

describeWith('postgres', 'a shared database', () => {
  afterEach(() => void vi.useRealTimers())

  it('in which nothing is wrong', async () => {
    await using server = await startPostgres()
    const { context } = await profile(await server.storeOf('worker', MAY_CREATE))
    const found = await findings(context)
    const names = new Set([
      'database',
      'token key',
      'database clock',
      'durability',
      'connections',
      'rights',
      'disk',
    ])
    const all = found.filter(({ check }) => names.has(check))
    expect(all).toEqual([
      {
        check: 'database',
        state: 'ok',
        text: expect.stringMatching(
          RegExp(
            String.raw`^can write and read; PostgreSQL \d+\.\d+; schema version ${VERSION}; the connection is not encrypted$`,
          ),
        ),
      },
      { check: 'token key', state: 'ok', text: 'fits; encrypts all 1 records' },
      { check: 'database clock', state: 'ok', text: "within 1 s of the database's" },
      { check: 'durability', state: 'ok', text: 'what is acknowledged survives a crash of the server' },
      { check: 'connections', state: 'ok', text: expect.stringMatching(/^9\d left; a relay uses 6$/) },
      { check: 'rights', state: 'ok', text: 'owns the schema' },
      { check: 'disk', state: 'skip', text: 'the data is in a shared database' },
    ])
  })

  it.each([
    ['fsync', 'can damage the database'],
    ['full_page_writes', 'can damage the database'],
    ['synchronous_commit', 'loses deliveries that were acknowledged'],
  ])('whose %s is off', async (setting, risk) => {
    await using server = await startPostgres()
    const given = await profile(server.store)
    await setUp(server, `ALTER SYSTEM SET ${setting} = off`)
    await expect
      .poll(() => finding('durability', Promise.resolve(given)))
      .toEqual([
        'fail',
        `${setting} off: a crash of the server ${risk}`,
        'turn it on in postgresql.conf and for the user of the database, then SELECT pg_reload_conf()',
      ])
  })

  it('whose user alone has synchronous_commit off', async () => {
    await using server = await startPostgres()
    const store = await server.storeOf('worker', MAY_CREATE, 'ALTER ROLE $user SET synchronous_commit = off')
    expect(await finding('durability', profile(store))).toMatchObject([
      'fail',
      'synchronous_commit off: a crash of the server loses deliveries that were acknowledged',
      {},
    ])
  })

  it('whose server, database or user has few connections left', async () => {
    const fix = 'raise max_connections, or run fewer relays'
    const few = ['fail', expect.stringMatching(/^[0-5] left, but a relay uses 6$/), fix]
    await using small = await startPostgres({ max_connections: '9', superuser_reserved_connections: '2' })
    expect(await finding('connections', profile(small.store))).toEqual(few)
    await using server = await startPostgres()
    const store = await server.storeOf('worker', MAY_CREATE)
    const given = profile(store)
    expect(await finding('connections', given)).toMatchObject(['ok', {}])
    await server.run('ALTER ROLE worker CONNECTION LIMIT 8')
    expect(await finding('connections', given)).toEqual(few)
    await server.run('ALTER ROLE worker CONNECTION LIMIT -1; ALTER DATABASE postgres CONNECTION LIMIT 8')
    expect(await finding('connections', given)).toEqual(few)
    await server.run('ALTER ROLE worker CONNECTION LIMIT 1; ALTER DATABASE postgres CONNECTION LIMIT -1')
    expect(await finding('database', given)).toMatchObject([
      'fail',
      expect.stringContaining('it has no connection left. Raise max_connections, or run fewer relays'),
      {},
    ])
  })

  it('whose clock differs from that of this machine', async () => {
    const { store } = await sharedPostgres()
    const given = await profile(store)
    const now = Date.now()
    for (const [seconds, text] of [
      [-60, 'this machine is 60 s behind the database'],
      [60, 'this machine is 60 s ahead of the database'],
    ] as const) {
      vi.useFakeTimers({ toFake: ['Date'], now: now + seconds * 1000 })
      const found = await finding('database clock', Promise.resolve(given))
      vi.useRealTimers()
      expect(found).toEqual([
        'fail',
        expect.stringMatching(text.replace('60', '(?:59|60|61)')),
        expect.anything(),
      ])
    }
  })

  it('whose user lacks a right', async () => {
    await using server = await startPostgres()
    const given = await profile(server.store)
    const { name } = given
    const worker = await server.storeOf(
      'worker',
      `GRANT USAGE ON SCHEMA "relay_${name}" TO $user`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "relay_${name}" TO $user`,
    )
    const asWorker = withEnv(given, { RELAY_STORE: String(worker) })
    expect(await finding('rights', asWorker)).toEqual([
      'ok',
      'can read and write; only the owner can update relay to a new schema',
    ])
    await server.run(`REVOKE DELETE ON "relay_${name}".delivery, "relay_${name}".body FROM worker`)
    expect(await finding('rights', asWorker)).toEqual([
      'fail',
      'the user lacks DELETE on body, and 1 more',
      `as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "relay_${name}" TO …`,
    ])
    await server.run(`REVOKE ALL ON SCHEMA "relay_${name}" FROM worker`)
    expect(await finding('database', asWorker)).toMatchObject([
      'fail',
      expect.stringContaining('its user lacks a right. Allow it with GRANT'),
      {},
    ])
  })

  it('that cannot be reached, has no data, is too new, or has another key', async () => {
    const server = await sharedPostgres()
    const { store } = server
    const problem = async (given: Promise<{ context: Parameters<typeof findings>[0] }>) =>
      (await finding('database', given))?.slice(0, 2)
    const away = new SharedStore('postgres://relay@127.0.0.1:1/postgres', store.secrets)
    expect(await problem(profile(away, {}, false))).toEqual([
      'fail',
      expect.stringContaining('it cannot be reached'),
    ])
    expect(await problem(profile(store, {}, false))).toEqual([
      'fail',
      expect.stringContaining('it has no data of this profile'),
    ])
    const given = await profile(store)
    expect(await problem(withEnv(given, { RELAY_TOKEN_KEY: OTHER }))).toEqual([
      'fail',
      expect.stringContaining('RELAY_TOKEN_KEY is not the key that this profile is encrypted with'),
    ])
    await server.run(`UPDATE "relay_${given.name}".relay_schema SET version = 99`)
    expect(await problem(Promise.resolve(given))).toEqual([
      'fail',
      expect.stringContaining('it was written by a newer version of relay'),
    ])
  })

  it('whose records are under two keys', async () => {
    const { store } = await sharedPostgres()
    const given = await profile(store)
    const { folder } = given
    const both = new SharedStore(String(store), {
      ...store.secrets,
      keys: { current: new Secret(OTHER), previous: KEY },
    })
    const rotating = withEnv(given, { RELAY_TOKEN_KEY: OTHER, RELAY_TOKEN_KEY_PREVIOUS: KEY.reveal() })
    {
      await using database = await openDatabase({ kind: both, folder })
      await database.store.put('token:alice', 'hers')
      expect(await finding('token key', rotating)).toEqual([
        'fail',
        '1 of 2 records are not under RELAY_TOKEN_KEY',
        'wait a minute: a running relay serve with both keys encrypts them again',
      ])
      await database.rotate()
      expect(await finding('token key', rotating)).toEqual([
        'ok',
        'fits; encrypts all 2 records. Remove RELAY_TOKEN_KEY_PREVIOUS once every machine has this key',
      ])
      const late = new SharedStore(String(store), {
        ...store.secrets,
        keys: { current: KEY, previous: both.secrets.keys?.current },
      })
      await using earlier = await openDatabase({ kind: late, folder })
      await earlier.store.put('token:bob', 'his')
    }
    const alone = withEnv(given, { RELAY_TOKEN_KEY: OTHER })
    expect(await finding('token key', alone)).toEqual([
      'fail',
      '1 of 3 records are not under RELAY_TOKEN_KEY',
      'set the earlier key as RELAY_TOKEN_KEY_PREVIOUS, here and for relay serve',
    ])
  })
})
