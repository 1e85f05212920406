import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/journal/delivery.js'
import { type Fixture, fixtureBody } from '../../src/journal/fixture.js'
import { passedOn } from '../../src/journal/headers.js'
import { GITEA, GITHUB, githubDelivery, giteaDelivery, post, SECRET } from '../helpers/delivery.js'
import { startSmee } from '../helpers/smee-server.js'
import { startWebhookService } from '../helpers/webhook-service.js'
import { sign } from '../../src/webhook/signature.js'
import { startTunnel } from './rig.js'

const GITEA_JSON = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'
const NONE: Partial<Entry> = {}
const textOf = (entry: Entry | undefined): string => Buffer.from(entry?.body ?? '').toString()

/** The bodies of the fixtures that are JSON. */
function fixtureBodies(provider: string): string[] {
  const folder = path.resolve('fixtures', provider)
  const fixtures = readdirSync(folder).map((file): Fixture =>
    JSON.parse(readFileSync(path.join(folder, file), 'utf8')),
  )
  return fixtures
    .filter(({ headers }) => headers['Content-Type'] === 'application/json')
    .map((fixture) => Buffer.from(fixtureBody(fixture)).toString())
}

describe('a delivery through a channel', () => {
  it.each([
    ['GitHub', 'github', GITHUB, githubDelivery],
    ['Gitea', 'gitea', GITEA, giteaDelivery],
  ] as const)(
    'of %s is in the journal with the bytes that were signed',
    async (_, name, provider, deliver) => {
      await using smee = await startSmee()
      await using rig = await startTunnel(smee.channel, { provider })
      await rig.status({ roundTrip: 'ok' })
      const bodies = fixtureBodies(name)
      for (const body of bodies) expect((await post(smee.channel, deliver({ body }))).status).toBe(200)
      await rig.stored(bodies.length)
      expect([...rig.journal.entries()].map(textOf)).toEqual(bodies)
      expect(rig.said).toEqual([])
    },
  )

  it('is the same in the journal as one over HTTP, but that it tells how it was restored', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { provider: GITEA })
    await using service = await startWebhookService({ provider: GITEA })
    const delivery = giteaDelivery({
      body: GITEA_JSON,
      set: {
        'User-Agent': 'Go-http-client/1.1',
        'X-GitHub-Hook-ID': '7',
        'X-Gitea-Event-Type': 'push',
        Cookie: 'a=b',
      },
    })
    await rig.status({ state: 'connected' })
    await post(smee.channel, delivery)
    await post(service.webhook, delivery)
    await rig.stored(1)
    const [{ restored, ...entry } = NONE] = rig.journal.entries()
    const direct = service.journal.read(1)
    // HTTP's own headers, Host and the length, are of the way, and are passed on to nobody.
    expect(entry).toEqual({ ...direct, headers: passedOn(direct?.headers ?? []), receivedAt: 1000 })
    expect(restored).toEqual({ how: 'indented-go', sha256: expect.stringMatching(/^[\w-]{43}$/) })
  })

  it('is known by its body: under another id it is the same', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    const [first, second] = [
      githubDelivery({ id: randomUUID() }),
      githubDelivery({ id: randomUUID(), event: 'star' }),
    ]
    await post(smee.channel, first)
    await post(smee.channel, second)
    await post(smee.channel, githubDelivery({ body: '{"other":1}' }))
    await rig.stored(2)
    expect([...rig.journal.summaries()].map(({ n, event, duplicates }) => [n, event, duplicates])).toEqual([
      [1, 'push', 1],
      [2, 'push', 0],
    ])
  })

  it('of a server that sends the bytes themselves is taken as it was sent', async () => {
    await using smee = await startSmee({ raw: true })
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    const body = '{"a": 12345678901234567890, "b": 1.0}\n'
    await post(smee.channel, githubDelivery({ body }))
    await rig.stored(1)
    expect([textOf(rig.journal.read(1)), rig.journal.read(1)?.restored?.how]).toEqual([body, 'raw'])
  })
})

describe('what a channel brings and is no delivery', () => {
  it.each([
    [
      'of which a number is lost',
      { body: '{"n":12345678901234567890}' },
      /unverifiable through this tunnel \(/,
    ],
    ['signed with another secret', { secret: 'another' }, /unverifiable through this tunnel \(/],
    [
      'not signed',
      { set: { 'X-Hub-Signature-256': undefined } },
      /invalid signature \(there is no X-Hub-Signature-256/,
    ],
    ['of no event', { set: { 'X-GitHub-Event': undefined } }, /Invalid event/],
  ])('%s, is refused, and it is said why', async (_, options, line) => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery(options))
    expect(await rig.says('a message of the tunnel was refused')).toMatch(line)
    expect(rig.journal.count()).toBe(0)
  })

  it('with its bytes, and signed wrongly, is an invalid signature', async () => {
    await using smee = await startSmee({ raw: true })
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery({ secret: 'another' }))
    expect(await rig.says('refused')).toBe(
      'a message of the tunnel was refused: invalid signature (signed with another secret, or the body was changed on its way)',
    )
  })

  it('larger than it may be, is refused, or dropped before it is kept whole', async () => {
    await using smee = await startSmee({ raw: true })
    await using rig = await startTunnel(smee.channel, { maxBody: 1000, limits: { event: 3000 } })
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery({ body: JSON.stringify('x'.repeat(1200)) }))
    await rig.says('refused: Request too large')
    await post(smee.channel, githubDelivery({ body: JSON.stringify('x'.repeat(4000)) }))
    await rig.says('dropped a message: it is larger than --max-body allows')
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
    expect(rig.journal.count()).toBe(1)
  })

  it('is passed over where it is none of HTTP', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    for (const text of ['ready', '"ready"', '{"message":"connected"}', '[]']) smee.write(`data: ${text}\n\n`)
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
    expect(rig.said).toEqual([])
  })

  it.each(['{', '{"body":{}}x', '{"body":{},"x-a":"\\u000', `{"body":${'['.repeat(2000)}`])(
    'cut short or broken, is refused: %s',
    async (text) => {
      await using smee = await startSmee()
      await using rig = await startTunnel(smee.channel)
      await rig.status({ roundTrip: 'ok' })
      smee.write(`data: ${text}\n\n`)
      await rig.says('a message of the tunnel was refused: Invalid event')
      expect(rig.journal.count()).toBe(0)
    },
  )
})

describe('a message that asks for more', () => {
  const body = '{"zen":"signed"}'
  const signed = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': 'a',
    'x-hub-signature-256': sign(SECRET, Buffer.from(body)),
    body: JSON.parse(body) as unknown,
  }

  it('is a delivery, and its path, query and target reach nothing', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    smee.message({
      ...signed,
      ':path': '/api/merge',
      path: '/auth/token/ada',
      method: 'DELETE',
      url: 'http://127.0.0.1:8787/health',
      target: { exec: 'touch /tmp/x' },
      query: { path: '/api/comment' },
      authorization: 'Bearer x',
      'x-http-method-override': 'DELETE',
      'bad name': 'x',
      'x-lines': 'a\r\nX-Injected: b',
      'x-unicode': '\u{1F600}',
      constructor: 'x',
      ['__proto__']: 'x',
    })
    await rig.stored(1)
    expect(rig.journal.read(1)?.headers).toEqual([
      ['Content-Type', 'application/json'],
      ['X-GitHub-Event', 'push'],
      ['X-GitHub-Delivery', 'a'],
      ['X-Hub-Signature-256', signed['x-hub-signature-256']],
      ['Path', '/auth/token/ada'],
      ['Method', 'DELETE'],
      ['Url', 'http://127.0.0.1:8787/health'],
      ['X-Http-Method-Override', 'DELETE'],
      ['Constructor', 'x'],
      ['__proto__', 'x'],
    ])
  })

  it('finds in the tunnel no way to anything but the intake', () => {
    const files = readdirSync('src/tunnel').map((file) => readFileSync(path.join('src/tunnel', file), 'utf8'))
    const rooms = files.flatMap((source) =>
      [...source.matchAll(/from '\.\.\/(\w+)\//g)].map(([, room]) => room),
    )
    expect(new Set(rooms)).toEqual(new Set(['base', 'journal', 'providers', 'store', 'webhook']))
  })

  it('loads the client only where there is a tunnel', () => {
    const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    )
    const sources = files.map((file) => [file, readFileSync(path.join('src', file), 'utf8')] as const)
    expect(sources.filter(([, source]) => source.includes("from 'smee-client'"))).toEqual([])
    const loading = sources.filter(([, source]) =>
      /from '[^']*tunnel\/(?!state)/.test(source.replaceAll(/import type .*/g, '')),
    )
    expect(loading.map(([file]) => file).filter((file) => !file.startsWith('tunnel'))).toEqual([])
  })

  it('is bounded in number: those that came first are kept, and the drop is said', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { limits: { queue: { messages: 2, size: 1_000_000 } } })
    await rig.status({ roundTrip: 'ok' })
    const flood = Array.from({ length: 200 }, () => `data: ${JSON.stringify({ ...signed, body: 1 })}\n\n`)
    smee.write([`data: ${JSON.stringify(signed)}\n\n`, ...flood].join(''))
    await rig.says('too many wait; those that came first are kept')
    await rig.stored(1)
    // Of what is refused or dropped two lines a second are said, and a count.
    expect(rig.said.length).toBeLessThan(10)
  })
})
