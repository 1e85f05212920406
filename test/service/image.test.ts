import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { Closing } from '../kit/closing.js'
import { codeBlocks } from '../kit/code-blocks.js'
import { githubDelivery, post } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { DEPLOY } from '../kit/haproxy.js'
import { buildImage, Container, type Image } from '../kit/image.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { type DatabaseServer, ownServer } from '../kit/postgres.js'
import { type Receiver, receiver } from '../kit/receiver.js'
import { run } from '../kit/run.js'
import { idsOf } from '../kit/service.js'

/** Bytes. */
const MAX_SIZE = 250_000_000
const blocks = codeBlocks(DEPLOY)

/** A service of compose.yaml, as Compose reads it. */
interface Service {
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly secrets: readonly { readonly source: string }[]
  readonly read_only?: boolean
  readonly depends_on?: Readonly<Record<string, unknown>>
}

/** compose.yaml in a folder where the page's steps were made, and what Compose reads in it. */
async function composed(): Promise<{
  readonly folder: string
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}> {
  const folder = emptyFolder()
  copyFileSync('compose.yaml', path.join(folder, 'compose.yaml'))
  writeFileSync(path.join(folder, 'compose.env'), blocks.get('compose.env') ?? '')
  await promisify(execFile)('sh', ['-e', '-c', blocks.get('secrets.sh') ?? 'exit 9'], { cwd: folder })
  const { stdout } = await promisify(execFile)('docker-compose', ['config'], { cwd: folder })
  return { folder, ...parse(stdout) }
}

describeWith('docker-compose', 'compose.yaml', () => {
  it('is valid, and its relays differ in their ports alone', async () => {
    const { services } = await composed()
    expect(Object.keys(services).toSorted()).toEqual(['database', 'one', 'two'])
    const { one, two } = services
    expect({ ...two, ports: one?.ports }).toEqual(one)
    expect([one?.ports, two?.ports]).toEqual([['127.0.0.1:8787:8787/tcp'], ['127.0.0.1:8788:8787/tcp']])
    expect(one).toMatchObject({
      init: true,
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      depends_on: { database: { condition: 'service_healthy' } },
    })
  })

  it('has secrets in files alone, which no other user of the machine can reach', async () => {
    const { folder, services, secrets } = await composed()
    const { out } = await run(['help', 'settings'])
    const known = new Set(out.match(/\b(?:RELAY_\w+|PGPASSWORD)\b/g))
    expect(Object.keys(secrets)).toEqual(['database_password', 'token_key', 'webhook_secret'])
    const texts = Object.values(secrets).map(({ file }) => readFileSync(file, 'utf8').trim())
    const variables = Object.values(services).flatMap(({ environment }) => Object.entries(environment))
    const ofRelay = variables.map(([name]) => name).filter((name) => /^(?:RELAY|PG)/.test(name))
    expect(ofRelay.filter((name) => !known.has(name.replace(/_FILE$/, '')))).toEqual([])
    const isOpen = ([name, value]: readonly [string, string]): boolean =>
      texts.some((text) => value.includes(text)) ||
      (/PASSWORD|KEY|SECRET/.test(name) && !value.startsWith('/run/secrets/'))
    expect(variables.filter(isOpen)).toEqual([])
    const { stdout } = await promisify(execFile)('stat', ['--format=%a', path.join(folder, 'secrets')])
    expect(stdout).toBe('700\n')
  })
})

describeWith(['Linux', 'mount', 'mmdebstrap', 'docker-compose', 'postgres'], 'the image', () => {
  const closing = new Closing()
  let image: Image
  let server: DatabaseServer
  let target: Receiver
  beforeAll(async () => {
    const [built, started, listening] = await Promise.all([buildImage('.'), ownServer(), receiver()])
    image = built
    server = closing.use(started)
    target = closing.use(listening)
  }, 900_000)
  afterAll(() => closing[Symbol.asyncDispose]())

  it('is small, and has no tool that relay does not need to run', async () => {
    expect(image.bytes).toBeLessThan(MAX_SIZE)
    const modules = path.join(image.root, 'opt/relay/node_modules')
    const own = new Set(Object.keys(packageJson.dependencies))
    const others = [
      ...Object.keys(packageJson.devDependencies),
      ...Object.keys(packageJson.optionalDependencies),
    ]
    expect(others.filter((name) => !own.has(name) && existsSync(path.join(modules, name)))).toEqual([])
    expect(readdirSync(path.join(image.root, 'usr/local/bin')).toSorted()).toEqual(['node', 'relay'])
    await using container = new Container(image, { cmd: ['--version'] })
    expect([await container.ended, container.out]).toEqual([0, `${packageJson.version}\n`])
  })

  it('stores data in its volume alone, as its user, and ends properly at SIGTERM', async () => {
    const env = { RELAY_PORT: String(await closedPort()) }
    await using alone = new Container(image, { env, readOnly: true })
    await expect.poll(() => alone.isHealthy()).toBe(true)
    const user = await alone.exec('sh', '-c', 'id -u; id -g; stat -c %U:%a /var/lib/relay; touch /x')
    expect(user.out).toBe("10001\n10001\nrelay:700\ntouch: cannot touch '/x': Read-only file system\n")
    expect((await alone.exec('cat', '/proc/1/cmdline')).out).toBe(
      ['node', '/usr/local/bin/relay', 'serve', '--keep-running', ''].join('\0'),
    )
    alone.kill('SIGTERM')
    await expect.poll(() => alone.isHealthy()).toBe(false)
    expect(await alone.ended).toBe(0)
  })

  it('is the hub of compose.hub.yaml, with invitations from inside', async () => {
    const port = String(await closedPort())
    const env = { RELAY_PORT: port, RELAY_PUBLIC_URL: `http://127.0.0.1:${port}` }
    await using server = new Container(image, { env, cmd: ['hub'], readOnly: true })
    await expect.poll(() => server.isHealthy()).toBe(true)
    const { code, out } = await server.exec('relay', 'hub', 'invite')
    expect(code).toBe(0)
    await using here = await place({ host: 'none' })
    const invited = { ...here.env, RELAY_HUB_TOKEN: /relay-hub-[\w-]{43}/.exec(out)?.[0] ?? '' }
    const relay = await here.serveWith({ env: invited }, '--tunnel', `http://127.0.0.1:${port}`)
    const { url } = await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    expect((await post(String(url), githubDelivery())).status).toBe(200)
    await relay.object({ type: 'delivery', n: 1 })
    await relay.stop()
    server.kill('SIGTERM')
    expect(await server.ended).toBe(0)
  })

  it('is what both relays of compose.yaml run, as one service', async () => {
    const { services, secrets } = await composed()
    const textOf = (name: string): string => readFileSync(secrets[name]?.file ?? '', 'utf8').trim()
    // As the database's image makes it.
    await server.run('CREATE DATABASE relay')
    await server.run(`ALTER ROLE relay PASSWORD '${textOf('database_password')}'`)
    await using stack = new Closing()
    const relays = []
    for (const name of ['one', 'two']) {
      const { environment = {}, secrets: mounted = [], read_only: readOnly = false } = services[name] ?? {}
      const port = await closedPort()
      const env = {
        ...environment,
        // On one network with the tests.
        RELAY_PORT: String(port),
        RELAY_STORE: String(environment['RELAY_STORE']).replace('@database', `@127.0.0.1:${server.port}`),
        RELAY_FORWARD: target.url,
      }
      const binds = mounted.map(({ source }) => ({
        from: secrets[source]?.file ?? '',
        to: `/run/secrets/${source}`,
      }))
      relays.push({ port, container: stack.use(new Container(image, { env, binds, readOnly })) })
    }
    for (const { container } of relays) await expect.poll(() => container.isHealthy()).toBe(true)
    const secret = textOf('webhook_secret')
    for (const [i, { port }] of relays.entries()) {
      const answer = await post(`http://127.0.0.1:${port}/webhook`, githubDelivery({ id: `of-${i}`, secret }))
      expect(answer.status).toBe(200)
    }
    await target.has(2)
    expect(idsOf(target)).toEqual(['of-0', 'of-1'])
    for (const { container } of relays) {
      const { code, out } = await container.exec('relay', 'log', '--json')
      expect([code, out.match(/"delivery":"of-\d"/g)]).toEqual([
        0,
        ['"delivery":"of-0"', '"delivery":"of-1"'],
      ])
    }
    for (const { container } of relays) container.kill('SIGTERM')
    for (const { container } of relays) expect(await container.ended).toBe(0)
  })
})
