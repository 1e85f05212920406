import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { saveSetup } from '../../src/setup/record.js'
import { openDatabase } from '../../src/store/open.js'
import { startSandbox } from '../../src/testing/index.js'
import { action, CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { KEY, PASSWORD, startPostgres } from '../helpers/postgres.js'
import { Program, relay } from '../helpers/program.js'
import { serviceEnvironment } from '../helpers/service.js'
import { beginSignIn, signIn } from '../helpers/sign-in.js'
import { startTarget } from '../helpers/target.js'

const LIST_LOADED = path.resolve('test/helpers/loaded.mjs')
/** Milliseconds in which a relay must work again by itself. */
const RECOVERY = 15_000

describeWith('postgres', 'relay serve on PostgreSQL', () => {
  it('receives, forwards and signs in; commands on other machines see it; no secret is shown or readable', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    await using sandbox = await startSandbox({ client: CLIENT })
    const env = serviceEnvironment(server, { ...codeHost(sandbox), RELAY_DEBUG: '1' })
    const heard: string[] = []
    const other = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await relay(args, env)
      heard.push(out, err)
      expect([code, err]).toEqual([0, expect.anything()])
      return out
    }
    await using program = new Program(
      ['serve', '--port', '0', '--json', '--verbose', '--forward', target.url],
      env,
    )
    const url = await program.url()
    const delivery = githubDelivery({ id: 'first' })
    expect((await post(`${url}/webhook`, delivery)).status).toBe(200)
    await target.has(1)
    expect(target.received[0]?.body.toString()).toBe(delivery.body.toString())
    await expect.poll(() => other('log', '--json')).toContain('"succeeded"')
    expect(await other('wait', 'push', '--since', '1h', '--json')).toContain('"n":1')
    expect(await other('show', '1', '--json')).toContain('first')
    expect(await other('replay', '1', '--to', `${url}/webhook`)).toContain('200')
    expect(await other('export', '1')).toContain('"delivery": "first"')
    await signIn(url, 'alice')
    const comment = { owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }
    const answer = await fetch(`${url}/api/comment`, action(await tokenOf(env), comment))
    expect(answer.status).toBe(200)
    heard.push(await other('config'), await other('config', '--json'), await other('doctor').catch(() => ''))
    heard.push(readFileSync(`/proc/${program.pid}/cmdline`, 'utf8'))
    const { out, err } = await program.stop()
    const token = await tokenOf(env)
    for (const secret of [PASSWORD, KEY.reveal(), encodeURIComponent(PASSWORD), SECRET])
      expect([out, err, ...heard].join('\n')).not.toContain(secret)
    const dump = await server.dump()
    expect(dump).toContain('first')
    for (const secret of [token, KEY.reveal(), SECRET, PASSWORD]) expect(dump).not.toContain(secret)
  })

  it('leaves no secret in a dump that can be read without the key', async () => {
    await using server = await startPostgres()
    await using sandbox = await startSandbox({ client: CLIENT })
    const env = serviceEnvironment(server, codeHost(sandbox))
    const app = { id: 1, slug: 'canary', privateKey: new Secret('-----BEGIN KEY-----\ncanary\n') }
    const setup = { provider: 'sandbox', providerUrl: sandbox.url, app, hookUrl: undefined } as const
    const client = { id: CLIENT.id, secret: new Secret(CLIENT.secret) }
    await using database = await openDatabase({
      kind: server.store,
      folder: path.join(emptyFolder(), 'default'),
    })
    await saveSetup(database.store, { ...setup, client }, undefined)
    await using program = new Program(['serve', '--port', '0', '--json'], env)
    const url = await program.url()
    await signIn(url, 'alice')
    // Its PKCE verifier waits for the callback.
    await beginSignIn(`${url}/auth/sandbox?userId=bob`)
    const dump = await server.dump()
    const { rows } = await server.run('SELECT key, value FROM relay_default.kv')
    const readable = rows.filter(
      ({ value }) => !/^\{"v":1,"key":"[0-9a-f]{8}","data":"[A-Za-z0-9+/=]+"\}$/.test(value),
    )
    expect(readable).toEqual([])
    const records = await Promise.all(
      (await database.store.list('')).map(async (key) => [key.split(':')[0], await database.store.get(key)]),
    )
    const kinds = ['token', 'bearer', 'origin', 'oauth-state', 'instance', 'setup-client', 'setup']
    expect(records.map(([kind]) => kind)).toEqual(expect.arrayContaining(kinds))
    const secrets = JSON.stringify(records).match(/(?<=")[\w.~+/=-]{20,}(?=")/g) ?? []
    expect(secrets).toEqual(expect.arrayContaining([CLIENT.secret, await tokenOf(env)]))
    // The hash of a token is in the key of its index.
    const unhashed = secrets.filter((secret) => !/^[0-9a-f]{64}$/.test(secret))
    expect([...unhashed, 'BEGIN KEY'].filter((secret) => dump.includes(secret))).toEqual([])
  })

  it('answers 503 while the server is away, then continues by itself: nothing acknowledged is lost', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    const env = serviceEnvironment(server)
    await using program = new Program(['serve', '--port', '0', '--json', '--forward', target.url], env)
    const url = await program.url()
    const acknowledged: string[] = []
    const statuses = new Set<number>()
    const stop = new AbortController()
    const send = async (id: string): Promise<void> => {
      const { status } = await post(`${url}/webhook`, githubDelivery({ id }))
      statuses.add(status)
      if (status === 200) acknowledged.push(id)
    }
    const senders = Array.from({ length: 8 }, async (_, sender) => {
      for (let i = 0; !stop.signal.aborted; i++) await send(`${sender}-${i}`)
    })
    const enough = async (more: number): Promise<void> => {
      const count = acknowledged.length + more
      await expect.poll(() => acknowledged.length, { timeout: RECOVERY }).toBeGreaterThan(count)
    }
    await enough(50)
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
      await server.stop(signal)
      expect((await post(`${url}/webhook`, githubDelivery({ id: `away-${signal}` }))).status).toBe(503)
      expect((await fetch(`${url}/health`)).status).toBe(200)
      await server.start()
      await enough(50)
    }
    await server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'relay %'`,
    )
    await enough(50)
    stop.abort()
    await Promise.all(senders)
    expect([...statuses].toSorted((one, other) => one - other)).toEqual([200, 503])
    const arrived = (): Set<string | undefined> =>
      new Set(
        target.received.map(
          ({ headers }) => headers.find(([name]) => /^x-github-delivery$/i.test(name))?.[1],
        ),
      )
    await expect
      .poll(() => acknowledged.filter((id) => !arrived().has(id)), { timeout: 2 * RECOVERY })
      .toEqual([])
    expect(await program.stop()).toMatchObject({ code: 0 })
  }, 120_000)

  it('forwards a delivery that was stored although its sender got no answer', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    await using program = new Program(
      ['serve', '--port', '0', '--json', '--forward', target.url],
      serviceEnvironment(server),
    )
    const url = await program.url()
    expect((await post(`${url}/webhook`, githubDelivery({ id: 'first' }))).status).toBe(200)
    await target.has(1)
    // As it is after a commit whose answer was lost.
    await server.run(`SET search_path = relay_default;
      INSERT INTO delivery (dedupe_key, received_at, provider, event, delivery_id, hook_id, verified_by, headers, size)
        SELECT 'other', received_at, provider, event, 'other', hook_id, verified_by, headers, size FROM delivery;
      INSERT INTO body SELECT 2, bytes FROM body;
      INSERT INTO forward SELECT 2, target, position, 'waiting', 0, since FROM forward`)
    await target.has(2)
    expect(target.received[1]?.body).toEqual(target.received[0]?.body)
  })

  it('takes the password from a file, also by way of a socket, and shows it nowhere', async () => {
    const folder = emptyFolder()
    chmodSync(folder, 0o777)
    await using server = await startPostgres({ unix_socket_directories: folder })
    const { PGPASSWORD: _, RELAY_STORE: __, ...rest } = serviceEnvironment(server)
    const password = encodeURIComponent(PASSWORD)
    const hosts = [`127.0.0.1:${server.port}`, `${encodeURIComponent(folder)}:${server.port}`]
    for (const host of hosts) {
      const RELAY_STORE_FILE = path.join(emptyFolder(), 'store')
      writeFileSync(RELAY_STORE_FILE, `postgres://relay:${password}@${host}/postgres\n`, { mode: 0o600 })
      const env = { ...rest, RELAY_STORE_FILE, RELAY_DEBUG: '1' }
      await using program = new Program(['serve', '--port', '0', '--verbose', '--json'], env)
      const url = await program.url()
      expect((await post(`${url}/webhook`, githubDelivery({ id: host }))).status).toBe(200)
      const shown = [readFileSync(`/proc/${program.pid}/cmdline`, 'utf8')]
      for (const args of [['config'], ['config', '--json'], ['log', '--json'], ['doctor', '--json']]) {
        const { out, err } = await relay(args, env)
        shown.push(out, err)
      }
      const { rows } = await server.run('SELECT string_agg(a::text, chr(10)) AS text FROM pg_stat_activity a')
      shown.push(String(rows[0]?.text))
      await server.stop()
      await expect.poll(async () => (await post(`${url}/webhook`, githubDelivery())).status).toBe(503)
      await server.start()
      const { out, err } = await program.stop()
      expect(shown.join('')).toContain(host)
      for (const secret of [PASSWORD, password, KEY.reveal()])
        expect([...shown, out, err].join('\n')).not.toContain(secret)
    }
  }, 60_000)

  it('loads the driver, which no other store does', async () => {
    await using server = await startPostgres()
    const loads = async (more: Readonly<Record<string, string>>): Promise<boolean> => {
      const LOADED = path.join(emptyFolder(), 'loaded')
      const env = { ...serviceEnvironment(server), ...more, LOADED, NODE_OPTIONS: `--import ${LIST_LOADED}` }
      await using program = new Program(['serve', '--port', '0', '--json'], env)
      await program.url()
      await program.stop()
      const files = readFileSync(LOADED, 'utf8')
      expect(files).not.toBe('')
      return /node_modules\/pg(?:-\w+|pass)?\//.test(files)
    }
    expect(await Promise.all([loads({}), loads({ RELAY_STORE: 'file' })])).toEqual([true, false])
  })

  it('says what is missing or wrong, with exit code 2, and changes nothing', async () => {
    await using server = await startPostgres()
    const env = serviceEnvironment(server)
    const without = (name: string) =>
      Object.fromEntries(Object.entries(env).filter(([each]) => each !== name))
    const start = (env: Readonly<Record<string, string>>, ...more: string[]) =>
      relay(['serve', '--port', '0', ...more], env)
    const cases = [
      [await start(without('RELAY_TOKEN_KEY')), 2, 'RELAY_TOKEN_KEY is not set'],
      [await start(without('RELAY_WEBHOOK_SECRET')), 2, 'RELAY_WEBHOOK_SECRET is not set'],
      [
        await start(without('PGPASSWORD')),
        1,
        'it needs a password. Set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE',
      ],
      [await start({ ...env, PGPASSWORD: 'another' }), 1, 'it rejected the user or the password'],
      [
        await start(env, '--store', 'postgres://relay:in-the-open@127.0.0.1/postgres'),
        2,
        'a password in the arguments can be read',
      ],
      [await start({ ...env, RELAY_TOKEN_KEY: 'short' }), 2, 'must be 32 bytes in base64'],
    ] as const
    for (const [{ code, out, err }, exit, why] of cases) {
      expect({ code, out, err }).toEqual({ code: exit, out: '', err: expect.stringContaining(why) })
      expect(err).not.toContain('in-the-open')
    }
    await using program = new Program(['serve', '--port', '0', '--json'], env)
    await program.url()
    await program.stop()
    const before = await server.dump()
    const keyIds = async (): Promise<readonly unknown[]> => {
      const { rows } = await server.run(`SELECT DISTINCT value::json ->> 'key' AS id FROM relay_default.kv`)
      return rows.map(({ id }) => id)
    }
    const [first] = await keyIds()
    const other = Buffer.alloc(32, 9).toString('base64')
    expect(await start({ ...env, RELAY_TOKEN_KEY: other })).toMatchObject({
      code: 2,
      err: expect.stringContaining('RELAY_TOKEN_KEY is not the key that this profile is encrypted with'),
    })
    expect(await server.dump()).toBe(before)
    await using rotated = new Program(['serve', '--port', '0', '--json'], {
      ...env,
      RELAY_TOKEN_KEY: other,
      RELAY_TOKEN_KEY_PREVIOUS: KEY.reveal(),
    })
    await rotated.url()
    await expect.poll(keyIds, { timeout: RECOVERY }).toEqual([expect.not.stringMatching(String(first))])
    expect(await rotated.stop()).toMatchObject({ code: 0 })
    expect(await start(env)).toMatchObject({ code: 2 })
  }, 120_000)
})

async function tokenOf(env: Readonly<Record<string, string>>): Promise<string> {
  const { out, err } = await relay(['token', '--user', 'alice'], env)
  if (out === '') throw new Error(err)
  return out.trim()
}
