import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { diagnose } from '../../src/cli/commands/doctor.js'
import { openDatabase } from '../../src/store/open.js'
import { VERSION } from '../../src/store/schema.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { database as newDatabase, type DatabaseServer, KEY, ownServer, PASSWORD } from '../kit/postgres.js'
import { testShell } from './cli-shell.js'

const OTHER = randomBytes(32).toString('base64')
const SECRETS = { password: new Secret(PASSWORD), keys: { current: new Secret(KEY) } }
const MAY_CREATE = 'GRANT CREATE ON DATABASE postgres TO $user'

/** A database as its owner sees it. */
const ownStore = ({ store }: { readonly store: string }): SharedStore => new SharedStore(store, SECRETS)

/** A server's database as another user, who owns nothing and may do what `rights` grants: statements for `$user`. */
async function storeOf(
  server: DatabaseServer,
  user: string,
  ...rights: readonly string[]
): Promise<SharedStore> {
  const grants = rights.map((right) => right.replaceAll('$user', user))
  await server.run([`CREATE ROLE ${user} LOGIN PASSWORD '${PASSWORD}'`, ...grants].join(';'))
  return new SharedStore(server.store.replace(/\/\/\w+@/, `//${user}@`), SECRETS)
}

interface Profile {
  readonly name: string
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
}

/** A profile in this store, which has data unless `create` is false. */
async function profile(store: SharedStore, create = true): Promise<Profile> {
  const home = emptyFolder()
  const name = path.basename(home)
  const folder = `${home}/${name}`
  if (create) await (await openDatabase({ kind: store, folder }))[Symbol.asyncDispose]()
  const env = {
    RELAY_HOME: home,
    RELAY_PROFILE: name,
    RELAY_STORE: String(store),
    RELAY_TOKEN_KEY: KEY,
    RELAY_PROVIDER: 'sandbox',
    PGPASSWORD: PASSWORD,
  }
  return { name, folder, env }
}

/** What is found of the database, with further variables. */
async function found({ env }: Profile, more: Record<string, string> = {}): Promise<readonly string[]> {
  const { shell } = testShell({ env: { ...env, ...more } })
  const {
    state = '',
    text = '',
    fix,
  } = (await diagnose(shell, {})).find(({ check }) => check === 'database') ?? {}
  return [state, text, ...(fix === undefined ? [] : [fix])]
}

describeWith('postgres', 'the check of a shared database', () => {
  afterEach(() => void vi.useRealTimers())

  it('finds nothing wrong where nothing is', async () => {
    await using server = await ownServer()
    const start = String.raw`can write and read; PostgreSQL \d+\.\d+; schema version ${VERSION}`
    expect(await found(await profile(await storeOf(server, 'worker', MAY_CREATE)))).toEqual([
      'ok',
      expect.stringMatching(
        new RegExp(`^${start}; the connection is not encrypted; the key fits; encrypts all 1 records$`),
      ),
    ])
  })

  it('finds what is off that a crash needs, also for the user alone', async () => {
    await using server = await ownServer()
    const given = await profile(ownStore(server))
    const lost = 'loses deliveries that were acknowledged'
    const fix = 'turn it on in postgresql.conf and for the user of the database, then SELECT pg_reload_conf()'
    for (const [setting, risk] of [
      ['fsync', 'can damage the database'],
      ['full_page_writes', 'can damage the database'],
      ['synchronous_commit', lost],
    ] as const) {
      await server.run(`ALTER SYSTEM SET ${setting} = off`)
      await server.run('SELECT pg_reload_conf()')
      await expect
        .poll(() => found(given))
        .toEqual(['fail', `${setting} off: a crash of the server ${risk}`, fix])
      await server.run(`ALTER SYSTEM RESET ${setting}`)
    }
    await server.run('SELECT pg_reload_conf()')
    await expect.poll(() => found(given)).toMatchObject(['ok', {}])
    const off = 'ALTER ROLE $user SET synchronous_commit = off'
    const store = await storeOf(server, 'worker', MAY_CREATE, off)
    expect((await found(await profile(store)))[1]).toBe(
      `synchronous_commit off: a crash of the server ${lost}`,
    )
  })

  it('compares the clocks', async () => {
    await using shared = await newDatabase()
    const given = await profile(ownStore(shared))
    for (const [seconds, direction] of [
      [-600, 'behind'],
      [600, 'ahead of'],
    ] as const) {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
      const [state, text] = await found(given)
      vi.useRealTimers()
      // This clock stands still meanwhile.
      const about = String.raw`^this machine is (?:5[89]|6[01])\d s ${direction} the database$`
      expect([state, text]).toEqual(['fail', expect.stringMatching(new RegExp(about))])
    }
  })

  it('finds a right that the user lacks', async () => {
    await using server = await ownServer()
    const given = await profile(ownStore(server))
    const { name } = given
    const worker = await storeOf(
      server,
      'worker',
      `GRANT USAGE ON SCHEMA "relay_${name}" TO $user`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "relay_${name}" TO $user`,
    )
    const asWorker = { RELAY_STORE: String(worker) }
    expect(await found(given, asWorker)).toMatchObject(['ok', {}])
    await server.run(`REVOKE DELETE ON "relay_${name}".delivery, "relay_${name}".body FROM worker`)
    const [, text, fix] = await found(given, asWorker)
    expect(text).toMatch(/lacks a right|the user lacks DELETE on body, DELETE on delivery/)
    expect(fix).toMatch(/GRANT SELECT, INSERT|relay config/)
    await server.run(`REVOKE ALL ON SCHEMA "relay_${name}" FROM worker`)
    expect(await found(given, asWorker)).toMatchObject([
      'fail',
      expect.stringContaining('its user lacks a right. Allow it with GRANT'),
      {},
    ])
  })

  it('says that it cannot be reached, has no data, is too new, or has another key', async () => {
    await using server = await newDatabase()
    const store = ownStore(server)
    const away = new SharedStore('postgres://relay@127.0.0.1:1/postgres', store.secrets)
    const given = await profile(store)
    const problem = async (of: Profile, more?: Record<string, string>): Promise<readonly string[]> =>
      (await found(of, more)).slice(0, 2)
    expect(await problem(await profile(away, false))).toEqual([
      'fail',
      expect.stringContaining('it cannot be reached'),
    ])
    expect(await problem(await profile(store, false))).toEqual([
      'fail',
      expect.stringContaining('it has no data of this profile'),
    ])
    expect(await problem(given, { RELAY_TOKEN_KEY: OTHER })).toEqual([
      'fail',
      expect.stringContaining('RELAY_TOKEN_KEY is not the key that this profile is encrypted with'),
    ])
    await server.run(`UPDATE "relay_${given.name}".relay_schema SET version = 99`)
    expect(await problem(given)).toEqual([
      'fail',
      expect.stringContaining('it was written by a newer version of relay'),
    ])
  })

  it('counts the records under another key', async () => {
    await using shared = await newDatabase()
    const store = ownStore(shared)
    const given = await profile(store)
    const { folder } = given
    const both = new SharedStore(String(store), {
      ...store.secrets,
      keys: { current: new Secret(OTHER), previous: new Secret(KEY) },
    })
    const rotating = { RELAY_TOKEN_KEY: OTHER, RELAY_TOKEN_KEY_PREVIOUS: KEY }
    {
      await using database = await openDatabase({ kind: both, folder })
      await database.store.put('token:alice', 'hers')
      expect(await found(given, rotating)).toEqual([
        'fail',
        '1 of 2 records are not under RELAY_TOKEN_KEY',
        'wait a minute: a running relay serve with both keys encrypts them again',
      ])
      await database.rotate()
      expect((await found(given, rotating))[1]).toContain(
        'the key fits; encrypts all 2 records. Remove RELAY_TOKEN_KEY_PREVIOUS once every machine has this key',
      )
      const late = new SharedStore(String(store), {
        ...store.secrets,
        keys: { current: new Secret(KEY), previous: both.secrets.keys?.current },
      })
      await using earlier = await openDatabase({ kind: late, folder })
      await earlier.store.put('token:bob', 'his')
    }
    expect(await found(given, { RELAY_TOKEN_KEY: OTHER })).toEqual([
      'fail',
      '1 of 3 records are not under RELAY_TOKEN_KEY',
      'set the earlier key as RELAY_TOKEN_KEY_PREVIOUS, here and for relay serve',
    ])
  })
})
