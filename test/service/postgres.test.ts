import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import path from 'node:path'
import { expect, it } from 'vitest'
import { canary } from '../kit/canary.js'
import { githubDelivery, SECRET } from '../kit/delivery.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { beginSignIn, finishSignIn, setUpApp, signIn } from '../kit/pages.js'
import { place, USER } from '../kit/place.js'
import { closedPort, portOf } from '../kit/ports.js'
import { database, KEY, ownServer, PASSWORD } from '../kit/postgres.js'
import { readProc } from '../kit/processes.js'
import { receiver } from '../kit/receiver.js'
import { nothingWaits } from '../kit/service.js'
import { sentSecrets, tapRequests } from '../kit/tap.js'

/** Milliseconds in which a relay must work again by itself. */
const RECOVERY = 15_000
/**
 * Ends the server's answer once no transaction is open (https://www.postgresql.org/docs/15/protocol-message-formats.html
 * ReadyForQuery).
 */
const COMMITTED = 'Z\0\0\0\u0005I'

describeWith('postgres', 'relay serve on PostgreSQL', () => {
  it('receives, forwards and signs in; commands on other machines see it; no secret is shown, or readable in a dump', async () => {
    await using shared = await database()
    const RELAY_PORT = String(await closedPort())
    const own = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined, RELAY_PORT, RELAY_DEBUG: '1' }
    await using here = await place({ env: { ...shared.env, ...own } })
    await using target = await receiver()
    using tap = tapRequests(Number(new URL(here.sandbox.url).port))
    const watch = canary()
    const other = async (...argv: string[]): Promise<string> => {
      const ran = await here.runWith({ env: { RELAY_HOME: emptyFolder() } }, ...argv)
      watch.heard(ran)
      expect([ran.code, ran.err]).toEqual([0, expect.anything()])
      return ran.out
    }
    watch.heard(await setUpApp(here, '--verbose'))
    const flags = ['--port', RELAY_PORT, '--verbose', '--forward', target.url]
    const relay = await here.serve(...flags)
    expect((await relay.deliver({ id: 'first' })).status).toBe(200)
    await target.has(1)
    expect(target.received[0]?.body.toString()).toBe(githubDelivery().body.toString())
    await expect.poll(() => other('log', '--json')).toContain('"succeeded"')
    expect(await other('wait', 'push', '--since', '1h', '--json')).toContain('"n":1')
    expect(await other('show', '1', '--json')).toContain('first')
    expect(await other('replay', '1', '--to', `${relay.address}/webhook`)).toContain('200')
    expect(await other('export', '1')).toContain('"delivery": "first"')
    expect((await signIn(relay.address, USER)).location).toContain('auth=success')
    const { out: token } = await here.run('token')
    const answer = await fetch(`${relay.address}/api/comment`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token.trim()}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ owner: 'octo', repo: 'demo', issueNumber: 1, body: 'hello' }),
    })
    expect(answer.status).toBe(200)
    for (const argv of [['config'], ['config', '--json'], ['whoami', '--json']]) await other(...argv)
    watch.heard(await here.run('doctor'))
    // Its PKCE verifier waits for the callback.
    const begun = await beginSignIn(`${relay.address}/auth/sandbox?userId=bob`)
    const dump = await shared.dump()
    expect((await finishSignIn(begun)).location).toContain('auth=success')
    watch.heard(await relay.stop())

    expect(dump).toContain('first')
    watch.text('dump', dump)
    watch.secrets(sentSecrets(tap.requests))
    watch.secret('password', PASSWORD)
    watch.secret('token key', KEY)
    watch.secret('webhook secret', SECRET)
    watch.check([
      'App key',
      'JWT',
      'PKCE verifier',
      'access token',
      'client secret',
      'password',
      'refresh token',
      'token key',
      'webhook secret',
    ])
  })

  it('forwards a delivery that was stored although its sender got no answer, and stores it once', async () => {
    await using shared = await database()
    await using target = await receiver()
    await using network = await losing(shared.port, 'unanswered')
    const RELAY_STORE = shared.store.replace(String(shared.port), String(network.port))
    await using here = await place({ host: 'none', env: { ...shared.env, RELAY_STORE } })
    const relay = await here.serve('--forward', target.url)
    expect((await relay.deliver({ id: 'first' })).status).toBe(200)
    await target.has(1)
    const { status } = await relay.deliver({ id: 'unanswered' })
    expect(network.lost).toBe(1)
    expect([200, 503]).toContain(status)
    await target.has(2)
    expect(target.received[1]?.body).toEqual(target.received[0]?.body)
    await nothingWaits(here)
    expect((await linesOf(here)).map(({ delivery }) => delivery)).toEqual(['first', 'unanswered'])
    expect(target.received).toHaveLength(2)
  })

  it('takes the password from a file, also by way of a socket, and shows it nowhere', async () => {
    const folder = emptyFolder()
    chmodSync(folder, 0o777)
    await using server = await ownServer({ unix_socket_directories: folder })
    const password = encodeURIComponent(PASSWORD)
    const hosts = [`127.0.0.1:${server.port}`, `${encodeURIComponent(folder)}:${server.port}`]
    const envs = hosts.map((host): Env => {
      const RELAY_STORE_FILE = path.join(emptyFolder(), 'store')
      writeFileSync(RELAY_STORE_FILE, `postgres://relay:${password}@${host}/postgres\n`, { mode: 0o600 })
      const unset = { PGPASSWORD: undefined, RELAY_STORE: undefined }
      return { ...server.env, ...unset, RELAY_STORE_FILE, RELAY_DEBUG: '1' }
    })
    const watch = canary()
    watch.secret('password', PASSWORD)
    watch.secret('token key', KEY)
    await using here = await place({ host: 'none' })
    const relays = await Promise.all(
      envs.map((env) =>
        here.serveWith({ env: { ...env, RELAY_HOME: emptyFolder() }, built: true }, '--verbose'),
      ),
    )
    for (const [i, relay] of relays.entries()) {
      expect((await relay.deliver({ id: hosts[i] ?? '' })).status).toBe(200)
      watch.text('command line', readProc(relay.pid, 'cmdline'))
    }
    for (const env of envs)
      for (const argv of [['config'], ['config', '--json'], ['log', '--json'], ['doctor', '--json']])
        watch.heard(await here.runWith({ env }, ...argv))
    const { rows } = await server.run('SELECT string_agg(a::text, chr(10)) AS text FROM pg_stat_activity a')
    watch.text('activity', String(rows[0]?.text))
    await server.stop()
    for (const relay of relays) await expect.poll(async () => (await relay.deliver()).status).toBe(503)
    await server.start()
    for (const relay of relays) watch.heard(await relay.stop())
    for (const host of hosts) expect(watch.textOf('output')).toContain(host)
    watch.check(['password', 'token key'])
  })

  it.each<[name: string, env: Env, flags: readonly string[], code: number, why: string]>([
    ['no key', { RELAY_TOKEN_KEY: undefined }, [], 2, 'RELAY_TOKEN_KEY is not set'],
    [
      'no password',
      { PGPASSWORD: undefined },
      [],
      1,
      'it needs a password. Set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE',
    ],
    ['another password', { PGPASSWORD: 'another' }, [], 1, 'it rejected the user or the password'],
    [
      'a password in the open',
      {},
      ['--store', 'postgres://relay:in-the-open@127.0.0.1/postgres'],
      2,
      'a password in the arguments can be read',
    ],
    ['a short key', { RELAY_TOKEN_KEY: 'short' }, [], 2, 'must be 32 bytes in base64'],
  ])('with %s says so and ends', async (_, env, flags, code, why) => {
    await using here = await place({ host: 'none', store: 'postgres', env })
    const { err, ...ended } = await here.run('serve', '--port', '0', ...flags)
    expect({ ...ended, err }).toEqual({ code, out: '', err: expect.stringContaining(why) })
    expect(err).not.toContain('in-the-open')
  })

  it('refuses another key and changes nothing; given the earlier one too, it encrypts all anew', async () => {
    await using shared = await database()
    await using here = await place({ env: shared.env })
    await (await here.serve()).stop()
    await here.useToken()
    const before = await shared.dump()
    const refuses = async (RELAY_TOKEN_KEY: string): Promise<void> =>
      expect(await here.runWith({ env: { RELAY_TOKEN_KEY } }, 'serve', '--port', '0')).toMatchObject({
        code: 2,
        err: expect.stringContaining('RELAY_TOKEN_KEY is not the key that this profile is encrypted with'),
      })
    const other = Buffer.alloc(32, 9).toString('base64')
    await refuses(other)
    expect(await shared.dump()).toBe(before)
    const env = { RELAY_TOKEN_KEY: other, RELAY_TOKEN_KEY_PREVIOUS: KEY }
    const rotated = await here.serveWith({ env })
    const doctor = async (): Promise<string> => (await here.runWith({ env }, 'doctor')).out
    await expect
      .poll(doctor, { timeout: RECOVERY })
      .toMatch(/fits; encrypts all [1-9]\d* records\. Remove RELAY_TOKEN_KEY_PREVIOUS/)
    expect(await rotated.stop()).toMatchObject({ code: 0 })
    await refuses(KEY)
    expect(await here.runWith({ env: { RELAY_TOKEN_KEY: other } }, 'token')).toMatchObject({ code: 0 })
  })
})

/** The network between relay and a server. It cuts the connection that has carried this text, in place of the answer that all of it is stored. */
async function losing(
  server: number,
  text: string,
): Promise<AsyncDisposable & { readonly port: number; readonly lost: number }> {
  let lost = 0
  const sockets = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(server, '127.0.0.1')
    let carried = false
    near.on('data', (bytes) => {
      carried ||= lost === 0 && bytes.includes(text)
      far.write(bytes)
    })
    far.on('data', (bytes) => {
      if (carried && lost === 0 && bytes.includes(COMMITTED)) {
        lost++
        near.destroy()
        far.destroy()
      } else near.write(bytes)
    })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => other.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    port: portOf(proxy),
    get lost() {
      return lost
    },
    async [Symbol.asyncDispose]() {
      proxy.close()
      for (const socket of sockets) socket.destroy()
      await once(proxy, 'close')
    },
  }
}
