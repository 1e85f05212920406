import { writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:https'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixtureOf, startRelay } from 'webhook-relay/testing'
import { selfSigned } from '../kit/certificate.js'
import { describeWith } from '../kit/needs.js'
import { place, type Serving } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import { receiver, valuesOf } from '../kit/receiver.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const here = fresh(() => place({ host: 'none' }))
const MAIN = 'refs/heads/main'

/** Writes the project's settings. */
const project = (...routes: object[]): void =>
  writeFileSync(path.join(here.cwd, 'relay.json'), JSON.stringify({ routes }))

async function push(relay: Serving, ref: string, id: string): Promise<void> {
  const body = JSON.stringify({ ref, repository: { full_name: 'octo/demo' } })
  expect((await relay.deliver({ event: 'push', id, body })).status).toBe(200)
}

describe('a route that is an object of a settings file', () => {
  it('gets the deliveries for which its conditions hold, beside the routes of flags', async () => {
    await using target = await receiver()
    await using other = await receiver()
    project(
      {
        name: 'deploy',
        match: ['push', 'issues'],
        where: [`ref==${MAIN}`, '@repo==OCTO/demo'],
        forward: target.url,
      },
      { where: '@source==stripe', forward: target.url },
    )
    const relay = await here.serve('--forward', `other=push[ref!=${MAIN}]=${other.url}`)
    await push(relay, 'refs/heads/dev', 'dev')
    await push(relay, MAIN, 'main')
    await relay.object({ type: 'attempt', n: 2 })
    await other.has(1)
    expect(target.received.map((each) => valuesOf(each, 'X-GitHub-Delivery'))).toEqual([['main']])
    expect(other.received.map((each) => valuesOf(each, 'X-GitHub-Delivery'))).toEqual([['dev']])
    const tested = await here.run('routes', 'test', '1')
    expect(tested.out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['yes', `push[ref!=${MAIN}]=${other.url}`, `push matches push[ref!=${MAIN}]`],
      [
        'no',
        `push,issues[ref==${MAIN}][@repo==OCTO/demo]=${target.url}`,
        `ref is refs/heads/dev, not ref==${MAIN}`,
      ],
      ['no', `*[@source==stripe]=${target.url}`, '@source is github, not @source==stripe'],
      [''],
    ])
    const [{ match, name } = {}] = objects((await here.run('routes', '--json')).out)
    expect({ match, name }).toEqual({ match: `push[ref!=${MAIN}]`, name: 'other' })
  })

  it('says with which conditions each target gets deliveries', async () => {
    const forward = 'http://127.0.0.1:1/'
    project({ name: 'all', where: `ref==${MAIN}`, forward })
    const relay = here.start('serve', '--port', '0', '--exec', `deploy=push[ref==${MAIN}][@repo~demo]=exit 0`)
    await relay.says('  sign in  ')
    expect(relay.err).toMatch(/^ +targets +deploy +exit 0 +push\[ref==refs\/heads\/main\]\[@repo~demo\]$/m)
    expect(relay.err).toMatch(new RegExp(`^ +all +${forward} +every event\\[ref==${MAIN}\\]$`, 'm'))
  })

  it('has a pattern for a condition, which holds up nothing whatever the sender has sent', async () => {
    await using target = await receiver()
    project({ match: 'push', where: 'ref ~ ^(\\w+/?)+$', forward: target.url })
    const relay = await here.serve('--forward', `push[ref~^(a|aa)+$]=${target.url}`)
    const began = performance.now()
    for (const [i, ref] of [`${'a'.repeat(60_000)}!`, `${MAIN}/${'a/'.repeat(30_000)}-`, MAIN].entries())
      await push(relay, ref, `d${i}`)
    await target.has(1)
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(target.received.map((each) => valuesOf(each, 'X-GitHub-Delivery'))).toEqual([['d2']])
    const refused = await here.run('routes', 'test', 'push', '--forward', 'push[ref~(?=x)]=3000')
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('syntax: `(?=`') })
  })

  it('runs a command, whose environment has what it needs to know', async () => {
    const exec = 'echo "$RELAY_EVENT $RELAY_REF $RELAY_NUMBER $RELAY_ATTEMPT"'
    project({ match: 'push', exec }, { match: 'issues', exec })
    const relay = await here.serve()
    await push(relay, MAIN, 'main')
    await relay.deliver({ event: 'issues', id: 'i', body: '{"action":"opened","issue":{"number":7}}' })
    await relay.objects({ type: 'attempt' }, 2)
    const answers = async (n: string): Promise<unknown> =>
      JSON.parse((await here.run('show', n, '--json')).out).attempts.map(
        (each: { answer: string }) => each.answer,
      )
    expect(await answers('1')).toEqual([`push ${MAIN}  1\n`])
    expect(await answers('2')).toEqual(['issues  7 1\n'])
  })

  it.each([
    [
      { match: 'push', forward: '3000', tiemout: '1s' },
      'routes[0].tiemout is no member of a route (did you mean timeout?)',
    ],
    [
      { match: 'push,', forward: '3000' },
      "routes[0].match: Invalid match '': write event or event.action, with * for all of a part",
    ],
    [
      { forward: 'https://example.com' },
      "routes[0].forward must be on this machine in a project's file. Set it in your own config.json",
    ],
    [
      { forward: '3000', headers: { 'X-Key': '${HOME}' } },
      "routes[0].headers names a variable, which a project's file cannot, since it could be any of yours. Set it in your own config.json",
    ],
    [
      { forward: 'https://localhost:1', ca: '../ca.pem' },
      "routes[0].ca cannot be set by a project's file. Set it in your own config.json",
    ],
  ])('%j of relay.json is refused', async (route, why) => {
    project(route)
    const { code, err } = await here.run('routes')
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: routes in ${path.join(here.cwd, 'relay.json')}: ${why}\n`,
    })
  })

  it('is read from RELAY_ROUTES as JSON, and is reloaded from a file', async () => {
    await using target = await receiver()
    const env = { RELAY_ROUTES: JSON.stringify([{ match: 'push', forward: target.url }]) }
    await using first = await here.serveWith({ env })
    await push(first, MAIN, 'a')
    await first.object({ type: 'attempt', n: 1 })
    await first.stop()
    const relay = await here.serve()
    project({ match: 'push', forward: target.url })
    await relay.says('Reloaded the settings: 1 routes')
    await push(relay, MAIN, 'b')
    await target.has(2)
    expect(target.received.map((each) => valuesOf(each, 'X-GitHub-Delivery'))).toEqual([['a'], ['b']])
    project({ match: 'push', forward: target.url, where: 'ref' })
    await relay.says('routes[0].where ref: expected ==, != or ~ at the end. So are sources and secrets')
  })

  it('takes effect at once where only how it sends is changed', async () => {
    await using target = await receiver()
    project({ forward: target.url, headers: { 'X-Of': 'first' } })
    const relay = await here.serve()
    await push(relay, MAIN, 'a')
    await target.has(1)
    project({ forward: target.url, headers: { 'X-Of': 'second' } })
    await relay.object({ type: 'settings', state: 'reloaded' })
    await push(relay, MAIN, 'b')
    await target.has(2)
    expect(target.received.map((each) => valuesOf(each, 'X-Of'))).toEqual([['first'], ['second']])
  })
})

describe('the headers of a route', () => {
  const canary = 'canary-of-the-user'

  it('name variables of the environment, replace those of the sender, and are shown nowhere', async () => {
    await using target = await receiver()
    const headers = { Authorization: 'Bearer $APP_KEY', 'User-Agent': 'relay-$$${APP_KEY}' }
    here.configure({ routes: [{ name: 'app', forward: target.url, headers }] })
    const relay = await here.serveWith({ env: { APP_KEY: canary } })
    await push(relay, MAIN, 'a')
    await relay.object({ type: 'attempt', n: 1 })
    const [request] = target.received
    expect(request && [valuesOf(request, 'Authorization'), valuesOf(request, 'User-Agent')]).toEqual([
      [`Bearer ${canary}`],
      [`relay-$${canary}`],
    ])
    for (const argv of [
      ['routes'],
      ['routes', '--json'],
      ['config'],
      ['config', '--json'],
      ['show', '1', '--json'],
    ]) {
      const { code, out, err } = await here.run(...argv)
      expect({ argv, code, err }).toEqual({ argv, code: 0, err: '' })
      expect(out).not.toContain(canary)
      expect(out).not.toContain('Bearer')
    }
    const { out, err } = await relay.stop()
    expect(out + err).not.toContain(canary)
  })

  it.each([
    [{}, 'The route *=URL needs the variable APP_KEY for its header X-Key, and it is not set'],
    [
      { APP_KEY: 'two\nlines' },
      'The route *=URL cannot send its header X-Key: a variable in it has a line end or another control character',
    ],
  ])('with the variables %j end the start', async (env, why) => {
    here.configure({ routes: [{ forward: 'http://localhost:1', headers: { 'X-Key': '$APP_KEY' } }] })
    const { code, err } = await here.runWith({ env }, 'serve', '--port', '0')
    expect({ code, err }).toEqual({ code: 2, err: `error: ${why.replace('*=URL', 'http://localhost:1')}\n` })
  })

  it('name no secret of relay', async () => {
    here.configure({
      routes: [{ forward: 'http://localhost:1', headers: { 'X-Key': '$RELAY_WEBHOOK_SECRET' } }],
    })
    const { code, err } = await here.run('serve', '--port', '0')
    expect(code).toBe(2)
    expect(err).toContain(
      'the value of "X-Key" names RELAY_WEBHOOK_SECRET, a secret of relay, which goes to no target',
    )
  })
})

describeWith('openssl', 'the certificate of a target', () => {
  const certificate = selfSigned('localhost')

  /** A server over TLS that counts what it gets. */
  async function secured() {
    let count = 0
    const server = createServer(certificate, (incoming, outgoing) => {
      count++
      incoming.resume()
      outgoing.end('ok')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return {
      url: `https://localhost:${portOf(server)}/`,
      received: () => count,
      async [Symbol.asyncDispose]() {
        server.close()
        server.closeAllConnections()
      },
    }
  }

  it('is checked, unless the route says that it is not, or names who signs it', async () => {
    await using target = await secured()
    const relay = await here.serve()
    const outcomeOf = async (n: number, route: object): Promise<unknown> => {
      here.configure({ routes: [{ forward: target.url, ...route }] })
      await relay.objects({ type: 'settings', state: 'reloaded' }, n)
      await push(relay, MAIN, `d-${n}`)
      return (await relay.object({ type: 'attempt', n })).outcome
    }
    expect(await outcomeOf(1, { match: 'push' })).toBe('unreachable')
    expect(await outcomeOf(2, { match: 'push,issues', verify: false })).toBe('succeeded')
    expect(await outcomeOf(3, { match: 'push,fork', ca: certificate.file })).toBe('succeeded')
    expect(target.received()).toBe(2)
  })

  it('that no file has ends the start', async () => {
    here.configure({ routes: [{ forward: 'https://localhost:1', ca: 'none.pem' }] })
    const { code, err } = await here.run('serve', '--port', '0')
    const file = path.join(here.configFolder, 'none.pem')
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: The route https://localhost:1: ${file} cannot be read (ENOENT)\n`,
    })
  })
})

it('a time limit is that of the route, of --timeout, or none', async () => {
  await using slow = await receiver('hang')
  await using other = await receiver('hang')
  here.configure({
    routes: [
      { name: 'own', forward: slow.url, timeout: '1s' },
      { name: 'none', exec: 'sleep 1.2', timeout: 'none' },
    ],
  })
  const relay = await here.serve('--timeout', '2s', '--forward', `flag=*=${other.url}`)
  await push(relay, MAIN, 'a')
  const [first, second, third] = await relay.objects({ type: 'attempt', n: 1 }, 3)
  expect([first, second, third].map((each) => [each?.target, each?.error])).toEqual([
    [slow.url, 'no answer within 1 s'],
    ['exec:sleep 1.2', null],
    [other.url, 'no answer within 2 s'],
  ])
  expect((await here.run('config', '--reveal', 'timeout')).code).toBe(2)
  expect((await here.runWith({ env: { RELAY_TIMEOUT: 'none' } }, 'config', '--reveal', 'timeout')).out).toBe(
    'none\n',
  )
})

describe('how the deliveries of a route are sent', () => {
  /** Answers the first attempt of delivery `a` with 503, and everything else with 200. */
  const once503 = () => {
    let count = 0
    return receiver((request) =>
      valuesOf(request, 'X-GitHub-Delivery')[0] === 'a' && count++ === 0 ? 503 : 200,
    )
  }
  const idsOf = ({ received }: Awaited<ReturnType<typeof receiver>>): unknown[] =>
    received.map((each) => valuesOf(each, 'X-GitHub-Delivery')[0])

  it('is strict in order for a route that is ordered, and only for that', async () => {
    await using strict = await once503()
    await using free = await once503()
    project({ name: 'strict', forward: strict.url, ordered: true }, { name: 'free', forward: free.url })
    const relay = await here.serve()
    for (const id of ['a', 'b', 'c']) await push(relay, MAIN, id)
    await Promise.all([strict.has(4), free.has(4)])
    expect([idsOf(strict), idsOf(free)]).toEqual([
      ['a', 'a', 'b', 'c'],
      ['a', 'b', 'c', 'a'],
    ])
  })

  it('is several at once for a route with concurrency', async () => {
    let answer = (): void => {}
    const answered = new Promise<200>((resolve) => (answer = () => resolve(200)))
    await using several = await receiver(() => answered)
    project({ name: 'several', forward: several.url, concurrency: 3 })
    const relay = await here.serve()
    for (const id of ['a', 'b', 'c']) await push(relay, MAIN, id)
    await several.has(3)
    answer()
    expect(await relay.objects({ type: 'attempt', outcome: 'succeeded' }, 3)).toHaveLength(3)
  })

  it('is shown by relay routes, without the values of headers', async () => {
    project({
      forward: '3000',
      timeout: 'none',
      ordered: true,
      concurrency: 2,
      headers: { 'X-Key': 'canary' },
    })
    const { out } = await here.run('routes')
    expect(out).toContain('http://localhost:3000 (no timeout) (ordered) (concurrency 2) (header X-Key)\n')
    const [object] = objects((await here.run('routes', '--json')).out)
    expect(object).toMatchObject({ options: ['no timeout', 'ordered', 'concurrency 2', 'header X-Key'] })
  })
})

it('routes that are objects are those of the testing kit, and of a program', async () => {
  const exec = 'printf %s "$RELAY_REF"'
  await using relay = await startRelay({ routes: [{ match: 'push', where: `ref==${MAIN}`, exec }] })
  const main = await relay.deliver(fixtureOf('push'), { set: { ref: MAIN } })
  const other = await relay.deliver(fixtureOf('push'), { set: { ref: 'refs/heads/dev' } })
  expect([main, other].map(({ attempts }) => attempts.map(({ answer }) => answer))).toEqual([[MAIN], []])
  expect(() => relay.replaceRoutes({ routes: [{ exec, headers: { A: '$UNSET' } }] })).toThrow(
    'routes[0].headers is for forward, not for exec',
  )
  const unset = [{ forward: '3000', headers: { A: '$UNSET' } }]
  expect(() => relay.replaceRoutes({ routes: unset })).toThrow('needs the variable UNSET for its header A')
})
