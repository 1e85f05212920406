import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request, type RequestOptions } from 'node:http'
import { request as secureRequest } from 'node:https'
import path from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { OPTION_NAMES, variablesOf } from '../../src/cli/settings/options.js'
import { startSandbox } from '../../src/testing/index.js'
import { selfSigned } from '../helpers/certificate.js'
import { Fleet, idsOf, nothingWaits } from '../helpers/chaos.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { codeBlocks } from '../helpers/code-blocks.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { DEPLOY, startHaproxy } from '../helpers/haproxy.js'
import { describeWith } from '../helpers/needs.js'
import { PASSWORD, type PostgresServer, startPostgres } from '../helpers/postgres.js'
import { relay } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'
import { serviceEnvironment, startServiceRelay } from '../helpers/service.js'
import { signIn } from '../helpers/sign-in.js'
import { startTarget } from '../helpers/target.js'

const blocks = codeBlocks(DEPLOY)
const PROGRAM = path.resolve('dist/bin/relay.js')

/** The status of a request that comes from this address. */
async function statusOf(url: string, options: RequestOptions & { ca?: string }): Promise<number | undefined> {
  const send = url.startsWith('https:') ? secureRequest : request
  const outgoing = send(url, options).end()
  const [answer] = await once(outgoing, 'response')
  answer.resume()
  return answer.statusCode
}

describeWith(['postgres', 'haproxy', 'openssl'], 'the load balancer of docs/deploy.md', () => {
  it('lets everybody deliver, and only trusted networks do the rest', async () => {
    await using server = await startPostgres()
    await using one = await startServiceRelay(server)
    await using other = await startServiceRelay(server)
    const ports = [one, other].map(({ url }) => Number(new URL(url).port))
    const certificate = selfSigned('127.0.0.1')
    await using balancer = await startHaproxy({ ports, certificate })
    const from = (localAddress: string, url: string, method = 'GET') =>
      statusOf(balancer.url + url, { localAddress, method, ca: certificate.cert, agent: false })
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
      '/health/',
      '/%61uth/github?userId=a',
      '/',
    ]
    for (const url of blocked) expect([url, await from('127.0.0.2', url)]).toEqual([url, 403])
    expect(await from('127.0.0.2', '/auth/token/alice', 'DELETE')).toBe(403)
    expect(await from('127.0.0.2', '/health')).toBe(200)
    // It came to relay, which finds no signature.
    expect(await from('127.0.0.2', '/webhook', 'POST')).toBe(401)
    expect(await from('127.0.0.1', '/auth/github/callback')).not.toBe(403)
  })

  it('shares the work between two relays, also a sign-in, and leaves out one that is gone', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    await using sandbox = await startSandbox({ client: CLIENT })
    const ports = [await closedPort(), await closedPort()]
    const env = { ...serviceEnvironment(server, codeHost(sandbox)) }
    const [first, second] = [await start(server, ports[0]), await start(server, ports[1])]
    async function start(on: PostgresServer, port?: number) {
      return startServiceRelay(on, ['--forward', target.url, '--port', String(port)], codeHost(sandbox))
    }
    await using one = first
    await using other = second
    await using balancer = await startHaproxy({ ports })
    const send = async (id: string) => (await post(`${balancer.url}/webhook`, githubDelivery({ id }))).status
    const ids = Array.from({ length: 10 }, (_, i) => String(i))
    for (const id of ids) expect(await send(id)).toBe(200)
    await target.has(10)
    expect(idsOf(target)).toEqual(ids)
    // In turn: it starts at one relay and ends at the other.
    await signIn(balancer.url, 'alice')
    const { out } = await relay(['whoami', '--user', 'alice'], env)
    expect(out).toContain('alice')
    await one.program.stop('SIGKILL')
    const statuses = []
    for (let i = 10; i < 30; i++) statuses.push(await send(String(i)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    await nothingWaits(server)
    expect(idsOf(target)).toEqual(Array.from({ length: 30 }, (_, i) => String(i)))
    expect((await other.program.stop()).code).toBe(0)
  }, 60_000)

  it('serves without a failure while the relays are started again, one at a time', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    const ports = [await closedPort(), await closedPort()]
    await using fleet = await Fleet.start(server, { size: 2, flags: ['--forward', target.url], ports })
    await using balancer = await startHaproxy({ ports })
    const stop = new AbortController()
    const statuses = new Map<number, number>()
    const sender = (async () => {
      for (let i = 0; !stop.signal.aborted; i++) {
        const { status } = await post(`${balancer.url}/webhook`, githubDelivery({ id: String(i) }))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    })()
    for (const i of [0, 1]) await fleet.injure(i, 'ended')
    stop.abort()
    await sender
    expect([...statuses.keys()]).toEqual([200])
    await nothingWaits(server)
  }, 60_000)
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

  it('reads settings that relay knows', () => {
    const names = (blocks.get('relay.env') ?? '').match(/^\w+(?==)/gm)
    expect(names).toEqual(expect.arrayContaining(['RELAY_STORE', 'RELAY_TOKEN_KEY']))
    const known = new Set(OPTION_NAMES.flatMap(variablesOf))
    expect(names?.filter((name) => !known.has(name))).toEqual([])
  })
})

/** Runs one of the page's scripts against a server; `input` is typed. */
async function run(
  server: PostgresServer,
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
async function makeAdministrator(server: PostgresServer): Promise<void> {
  await server.run(`CREATE ROLE admin SUPERUSER LOGIN PASSWORD '${PASSWORD}'`)
  const address = { host: '127.0.0.1', port: server.port, database: 'postgres' }
  const admin = new Client({ ...address, user: 'admin', password: PASSWORD, ssl: false })
  await admin.connect()
  await admin.query('ALTER ROLE relay RENAME TO first')
  await admin.end()
}

describeWith('postgres', 'the scripts of docs/deploy.md', () => {
  it('make a database, back it up and restore it, with all that was in it', async () => {
    await using server = await startPostgres()
    await using target = await startTarget()
    await using sandbox = await startSandbox({ client: CLIENT })
    const folder = emptyFolder()
    await makeAdministrator(server)
    await run(server, 'create.sh', folder, 'admin', `${PASSWORD}\n${PASSWORD}\n`)
    const RELAY_STORE = `postgres://relay@127.0.0.1:${server.port}/relay`
    const env = { ...codeHost(sandbox), RELAY_STORE }
    const log = async () => (await relay(['log', '--json'], serviceEnvironment(server, env))).out
    let before = ''
    {
      await using running = await startServiceRelay(server, ['--forward', target.url], env)
      for (const id of ['a', 'b', 'c'])
        expect((await post(`${running.url}/webhook`, githubDelivery({ id }))).status).toBe(200)
      await signIn(running.url, 'alice')
      await target.has(3)
      await expect.poll(log).not.toContain('"waiting"')
      before = await log()
      await run(server, 'backup.sh', folder, 'relay')
      expect((await post(`${running.url}/webhook`, githubDelivery({ id: 'lost' }))).status).toBe(200)
      await running.program.stop()
    }
    await run(server, 'restore.sh', folder, 'relay')
    expect(await log()).toBe(before)
    await using restored = await startServiceRelay(server, ['--forward', target.url], env)
    const { out } = await relay(['whoami', '--user', 'alice'], serviceEnvironment(server, env))
    expect(out).toContain('alice')
    expect((await post(`${restored.url}/webhook`, githubDelivery({ id: 'd' }))).status).toBe(200)
    await expect.poll(async () => (await log()).includes('"n":4')).toBe(true)
  }, 60_000)
})
