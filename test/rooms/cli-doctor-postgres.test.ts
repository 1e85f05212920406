import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { diagnose } from '../../src/cli/checks/diagnose.js'
import { openDatabase } from '../../src/store/open.js'
import { currentVersion } from '../../src/store/schema.js'
import { emptyFolder } from '../kit/folder.js'
import { describeWith } from '../kit/needs.js'
import { database, type DatabaseServer, KEY, ownServer, PASSWORD } from '../kit/postgres.js'
import { testShell } from './cli-shell.js'

const OTHER = randomBytes(32).toString('base64')
const MAY_CREATE = 'GRANT CREATE ON DATABASE postgres TO $user'

/** A database at an address, with keys. */
function storeAt(address: string, current = KEY, previous?: string): SharedStore {
  const keys = { current: new Secret(current), previous: previous ? new Secret(previous) : undefined }
  return new SharedStore(address, { password: new Secret(PASSWORD), keys })
}

/** A server's database as another user, who owns nothing and may do what `rights` grants: statements for `$user`. */
async function storeOf(server: DatabaseServer, user: string, ...rights: readonly string[]) {
  const grants = rights.map((right) => right.replaceAll('$user', user))
  await server.run([`CREATE ROLE ${user} LOGIN PASSWORD '${PASSWORD}'`, ...grants].join(';'))
  return storeAt(server.store.replace(/\/\/\w+@/, `//${user}@`))
}

/** A profile in this store, which has data unless `create` is false. */
async function profile(store: SharedStore, create = true) {
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
  /** State, text and remedy of what is found of the database, with further variables. */
  const found = async (more: Record<string, string> = {}): Promise<readonly string[]> => {
    const { shell } = testShell({ env: { ...env, ...more } })
    const results = await diagnose(shell, {})
    const { state = '', text = '', fix } = results.find(({ check }) => check === 'database') ?? {}
    return [state, text, ...(fix === undefined ? [] : [fix])]
  }
  return { schema: `"relay_${name}"`, folder, found }
}

describeWith('postgres', 'the check of a shared database', () => {
  afterEach(() => void vi.useRealTimers())

  it('finds what is off that a crash needs, also for the user alone, and otherwise nothing', async () => {
    await using server = await ownServer()
    const { found } = await profile(storeAt(server.store))
    const damages = 'can damage the database'
    const lost = 'loses deliveries that were acknowledged'
    const fix = 'turn it on in postgresql.conf and for the user of the database, then SELECT pg_reload_conf()'
    for (const [setting, risk] of [
      ['fsync', damages],
      ['full_page_writes', damages],
      ['synchronous_commit', lost],
    ] as const) {
      await server.run(`ALTER SYSTEM SET ${setting} = off`)
      await server.run('SELECT pg_reload_conf()')
      const problem = ['fail', `${setting} off: a crash of the server ${risk}`, fix]
      await expect.poll(() => found()).toEqual(problem)
      await server.run(`ALTER SYSTEM RESET ${setting}`)
    }
    await server.run('SELECT pg_reload_conf()')
    await expect.poll(() => found()).toMatchObject(['ok', {}])
    const fine = await profile(await storeOf(server, 'fine', MAY_CREATE))
    const start = String.raw`^can write and read; PostgreSQL \d+\.\d+; schema version ${currentVersion()}`
    const all = `${start}; the connection is not encrypted; the key fits; encrypts all 1 records$`
    expect(await fine.found()).toEqual(['ok', expect.stringMatching(all)])
    const off = 'ALTER ROLE $user SET synchronous_commit = off'
    const alone = await profile(await storeOf(server, 'worker', MAY_CREATE, off))
    expect((await alone.found())[1]).toBe(`synchronous_commit off: a crash of the server ${lost}`)
  })

  it('compares the clocks', async () => {
    await using server = await database()
    const { found } = await profile(storeAt(server.store))
    for (const [seconds, direction] of [
      [-600, 'behind'],
      [600, 'ahead of'],
    ] as const) {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
      const [state, text] = await found()
      vi.useRealTimers()
      // This clock stands still meanwhile.
      const about = String.raw`^this machine is (?:5[89]|6[01])\d s ${direction} the database$`
      expect([state, text]).toEqual(['fail', expect.stringMatching(about)])
    }
  })

  it('finds a right that the user lacks', async () => {
    await using server = await ownServer()
    const { schema, found } = await profile(storeAt(server.store))
    const worker = await storeOf(
      server,
      'worker',
      `GRANT USAGE ON SCHEMA ${schema} TO $user`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO $user`,
    )
    const asWorker = { RELAY_STORE: String(worker) }
    expect(await found(asWorker)).toMatchObject(['ok', {}])
    await server.run(`REVOKE DELETE ON ${schema}.delivery, ${schema}.body FROM worker`)
    const [, text, fix] = await found(asWorker)
    expect(text).toMatch(/lacks a right|the user lacks DELETE on body, DELETE on delivery/)
    expect(fix).toMatch(/GRANT SELECT, INSERT|relay config/)
    await server.run(`REVOKE ALL ON SCHEMA ${schema} FROM worker`)
    const allow = expect.stringContaining('its user lacks a right. Allow it with GRANT')
    expect(await found(asWorker)).toMatchObject(['fail', allow, {}])
  })

  it('says that it cannot be reached, has no data, is too new, or has another key', async () => {
    await using server = await database()
    const store = storeAt(server.store)
    const { schema, found } = await profile(store)
    const away = await profile(storeAt('postgres://relay@127.0.0.1:1/postgres'), false)
    const empty = await profile(store, false)
    const withOther = await found({ RELAY_TOKEN_KEY: OTHER })
    await server.run(`UPDATE ${schema}.relay_schema SET version = 99`)
    for (const [results, why] of [
      [await away.found(), 'it cannot be reached'],
      [await empty.found(), 'it has no data of this profile'],
      [withOther, 'RELAY_TOKEN_KEY is not the key that this profile is encrypted with'],
      [await found(), 'it was written by a newer version of relay'],
    ] as const)
      expect(results.slice(0, 2)).toEqual(['fail', expect.stringContaining(why)])
  })

  it('counts the records under another key', async () => {
    await using server = await database()
    const { folder, found } = await profile(storeAt(server.store))
    {
      await using data = await openDatabase({ kind: storeAt(server.store, OTHER, KEY), folder })
      await data.store.put('token:alice', 'hers')
      const rotating = { RELAY_TOKEN_KEY: OTHER, RELAY_TOKEN_KEY_PREVIOUS: KEY }
      expect(await found(rotating)).toEqual([
        'fail',
        '1 of 2 records are not under RELAY_TOKEN_KEY',
        'wait a minute: a running relay serve with both keys encrypts them again',
      ])
      await data.rotate()
      expect((await found(rotating))[1]).toContain(
        'the key fits; encrypts all 2 records. Remove RELAY_TOKEN_KEY_PREVIOUS once every machine has this key',
      )
      await using earlier = await openDatabase({ kind: storeAt(server.store, KEY, OTHER), folder })
      await earlier.store.put('token:bob', 'his')
    }
    expect(await found({ RELAY_TOKEN_KEY: OTHER })).toEqual([
      'fail',
      '1 of 3 records are not under RELAY_TOKEN_KEY',
      'set the earlier key as RELAY_TOKEN_KEY_PREVIOUS, here and for relay serve',
    ])
  })
})
