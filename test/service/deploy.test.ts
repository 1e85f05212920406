import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import path from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Certificate, selfSigned } from '../kit/certificate.js'
import { Closing } from '../kit/closing.js'
import { codeBlocks } from '../kit/code-blocks.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { DEPLOY, haproxy, type Haproxy } from '../kit/haproxy.js'
import { describeWith } from '../kit/needs.js'
import { signIn } from '../kit/pages.js'
import { type Place, place, USER } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { database, type Database, type DatabaseServer, ownServer, PASSWORD } from '../kit/postgres.js'
import { type Receiver, receiver } from '../kit/receiver.js'
import { PROGRAM, run } from '../kit/run.js'
import { type Fleet, fleet, idsOf, nothingWaits, outcome, senders } from '../kit/service.js'

const blocks = codeBlocks(DEPLOY)

describeWith(['postgres', 'haproxy', 'openssl'], 'the load balancer of docs/deploy.md', () => {
  const closing = new Closing()
  let shared: Database
  let here: Place
  let target: Receiver
  let relays: Fleet
  let certificate: Certificate
  let secure: Haproxy
  let balancer: Haproxy
  beforeAll(async () => {
    shared = closing.use(await database())
    here = closing.use(await place({ env: shared.env }))
    target = closing.use(await receiver())
    const ports = [await closedPort(), await closedPort()]
    const flags = ['--forward', target.url]
    relays = closing.use(await fleet({ ...shared, env: here.env }, { size: 2, flags, ports }))
    certificate = selfSigned('127.0.0.1')
    const both = await Promise.all([haproxy({ ports, certificate }), haproxy({ ports })])
    for (const each of both) closing.use(each)
    ;[secure, balancer] = both
  })
  afterAll(() => closing[Symbol.asyncDispose]())

  /** The status of a request that comes from this address. */
  async function statusFrom(localAddress: string, url: string, method = 'GET'): Promise<number | undefined> {
    const options = { localAddress, method, ca: certificate.cert, agent: false }
    const outgoing = request(secure.url + url, options).end()
    const [answer] = await once(outgoing, 'response')
    answer.resume()
    return answer.statusCode
  }

  it('lets everybody deliver, and only trusted networks do the rest', async () => {
    const blocked = [
      '/auth/github?userId=a',
      '/auth/github/callback',
      '/inspect/',
      '/metrics',
      '/ready',
      '/instance/routes',
      '/api/comment',
      '//auth/github?userId=a',
      '/webhook/../auth/github?userId=a',
      '/webhook/shop/../../auth/github?userId=a',
      '/health/',
      '/%61uth/github?userId=a',
      '/',
    ]
    for (const url of blocked) expect([url, await statusFrom('127.0.0.2', url)]).toEqual([url, 403])
    expect(await statusFrom('127.0.0.2', '/auth/token/alice', 'DELETE')).toBe(403)
    expect(await statusFrom('127.0.0.2', '/health')).toBe(200)
    // It came to relay, which finds no signature.
    expect(await statusFrom('127.0.0.2', '/webhook', 'POST')).toBe(401)
    // The same of a source: it has none of that name.
    expect(await statusFrom('127.0.0.2', '/webhook/shop', 'POST')).toBe(404)
    expect(await statusFrom('127.0.0.1', '/auth/github/callback')).not.toBe(403)
  })

  it('serves without a failure while the relays are started again, one at a time', async () => {
    await using load = senders({ count: 4, url: () => balancer.url, pause: 50 })
    await load.more(20)
    for (const i of [0, 1]) {
      await relays.injure(i, 'ended')
      await balancer.allInUse()
    }
    await load.more(20)
    await load.stop()
    expect([...load.statuses.keys()]).toEqual([200])
    const { lost, twice, targets } = await outcome(shared, load.acknowledged, [target])
    expect({ lost, twice, targets }).toEqual({
      lost: [],
      twice: [],
      targets: [{ missing: [], disordered: [], repeats: expect.any(Number) }],
    })
  })

  it('shares the work between two relays, also a sign-in, and leaves out one that is gone', async () => {
    const before = target.received.length
    const send = async (id: string): Promise<number> =>
      (await post(`${balancer.url}/webhook`, githubDelivery({ id }))).status
    const arrived = (): readonly string[] => idsOf({ received: target.received.slice(before) })
    const ids = Array.from({ length: 10 }, (_, i) => String(i))
    for (const id of ids) expect(await send(id)).toBe(200)
    await target.has(before + 10)
    expect(arrived()).toEqual(ids)
    // In turn: it starts at one relay and ends at the other.
    await signIn(balancer.url, USER)
    expect((await here.run('whoami')).out).toContain(USER)
    await relays.at(0).program.stop('SIGKILL')
    const statuses = []
    for (let i = 10; i < 30; i++) statuses.push(await send(String(i)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    await nothingWaits(shared)
    expect(arrived()).toEqual(Array.from({ length: 30 }, (_, i) => String(i)))
  })
})

describeWith('systemd-analyze', 'the unit of docs/deploy.md', () => {
  it('is one that systemd accepts', async () => {
    const file = path.join(emptyFolder(), 'relay.service')
    const unit = blocks.get('relay.service') ?? ''
    expect(unit).toContain('ExecStart=/usr/bin/relay serve')
    writeFileSync(file, unit.replace('/usr/bin/relay', PROGRAM))
    const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: '' })
  })

  it('reads settings that relay knows', async () => {
    const names = (blocks.get('relay.env') ?? '').match(/^\w+(?==)/gm)
    expect(names).toEqual(expect.arrayContaining(['RELAY_STORE', 'RELAY_TOKEN_KEY']))
    const { out } = await run(['help', 'settings'])
    const known = new Set(out.match(/\b(?:RELAY_\w+|PGPASSWORD)\b/g))
    expect(names?.filter((name) => !known.has(name))).toEqual([])
  })
})

/** Runs one of the page's scripts against a server; `input` is typed. */
async function runScript(
  server: DatabaseServer,
  name: string,
  cwd: string,
  user: string,
  input = '',
): Promise<void> {
  const env = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(server.port),
    PGUSER: user,
    PGPASSWORD: PASSWORD,
  }
  // In a session of its own, where no terminal can be asked.
  const shell = spawn('sh', ['-e', '-c', blocks.get(name) ?? 'exit 9'], {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let err = ''
  shell.stderr.on('data', (bytes) => (err += String(bytes)))
  shell.stdin.end(input)
  const [code] = await once(shell, 'close')
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${err}`)
}

/** A superuser called admin, in place of the tests' own, which has the name that the page gives its user. */
async function makeAdministrator(server: DatabaseServer): Promise<void> {
  await server.run(`CREATE ROLE admin SUPERUSER LOGIN PASSWORD '${PASSWORD}'`)
  const address = { host: '127.0.0.1', port: server.port, database: 'postgres' }
  const admin = new Client({ ...address, user: 'admin', password: PASSWORD, ssl: false })
  await admin.connect()
  await admin.query('ALTER ROLE relay RENAME TO first')
  await admin.end()
}

describeWith('postgres', 'the scripts of docs/deploy.md', () => {
  it('make a database, back it up and restore it, with all that was in it', async () => {
    await using server = await ownServer()
    await using target = await receiver()
    const folder = emptyFolder()
    await makeAdministrator(server)
    await runScript(server, 'create.sh', folder, 'admin', `${PASSWORD}\n${PASSWORD}\n`)
    const RELAY_STORE = `postgres://relay@127.0.0.1:${server.port}/relay`
    await using here = await place({ env: { ...server.env, RELAY_STORE } })
    const log = async (): Promise<string> => (await here.run('log', '--json')).out
    const relay = await here.serve('--forward', target.url)
    for (const id of ['a', 'b', 'c']) expect((await relay.deliver({ id })).status).toBe(200)
    await signIn(relay.address, USER)
    await target.has(3)
    await expect.poll(log).not.toContain('"waiting"')
    const before = await log()
    await runScript(server, 'backup.sh', folder, 'relay')
    expect((await relay.deliver({ id: 'lost' })).status).toBe(200)
    await relay.stop()
    await runScript(server, 'restore.sh', folder, 'relay')
    expect(await log()).toBe(before)
    const restored = await here.serve('--forward', target.url)
    expect((await here.run('whoami')).out).toContain(USER)
    expect((await restored.deliver({ id: 'd' })).status).toBe(200)
    await expect.poll(async () => (await log()).includes('"n":4')).toBe(true)
  })
})
