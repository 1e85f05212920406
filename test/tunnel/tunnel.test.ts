import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Entry } from '../../src/journal/delivery.js'
import { type Fixture, fixtureBody } from '../../src/fixtures/fixture.js'
import { passedOn } from '../../src/http/headers.js'
import { GITEA, GITHUB, githubDelivery, giteaDelivery, post, SECRET } from '../helpers/delivery.js'
import { gosmee as startGosmee, smee as startSmee } from '../kit/smee.js'
import { formThroughSmee } from '../helpers/through-smee.js'
import { startWebhookService } from '../helpers/webhook-service.js'
import { sign } from '../../src/webhook/signature.js'
import { startTunnel } from './rig.js'
import { countOf, entriesOf, entryOf, summariesOf } from '../helpers/journal.js'

const GITEA_JSON = '{\n  "action": "opened",\n  "title": "\\u003cb\\u003e \\u0026 é",\n  "number": 3\n}'
const textOf = (entry: Entry | undefined): string => Buffer.from(entry?.body ?? '').toString()

/** The events and JSON bodies of the fixtures. */
function fixtureBodies(provider: string): { event: string; body: string }[] {
  const folder = path.resolve('fixtures', provider)
  const fixtures = readdirSync(folder).map((file): Fixture =>
    JSON.parse(readFileSync(path.join(folder, file), 'utf8')),
  )
  return fixtures
    .filter(({ headers }) => headers['Content-Type'] === 'application/json')
    .map((fixture) => ({ event: fixture.event, body: Buffer.from(fixtureBody(fixture)).toString() }))
}

describe('a delivery through a channel', () => {
  it.each([
    ['GitHub', 'github', GITHUB, githubDelivery],
    ['Gitea', 'gitea', GITEA, giteaDelivery],
  ] as const)('of %s is stored with the bytes that were signed', async (_, name, provider, deliver) => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { provider })
    await rig.status({ roundTrip: 'ok' })
    const sent = fixtureBodies(name)
    for (const one of sent) expect((await post(smee.channel, deliver(one))).status).toBe(200)
    await rig.stored(sent.length)
    const entries = await entriesOf(rig.journal)
    expect(entries.map((entry) => ({ event: entry.event, body: textOf(entry) }))).toEqual(sent)
    expect(entries.filter(({ restored }) => restored?.unproved)).toEqual([])
    expect(rig.logged).toEqual([])
  })

  it('is stored like one over HTTP, plus how it was restored', async () => {
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
    const { restored, ...entry } = await entryOf(rig.journal, 1)
    const direct = await entryOf(service.journal, 1)
    // Host and Content-Length belong to the connection and are never forwarded.
    expect(entry).toEqual({ ...direct, headers: passedOn(direct.headers), receivedAt: 1000 })
    expect(restored).toEqual({
      how: 'indented-go',
      sha256: expect.stringMatching(/^[\w-]{43}$/),
      unproved: true,
    })
  })

  it('is identified by its body: the same body under another id is a duplicate', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    const [first, second] = [githubDelivery({ id: randomUUID() }), githubDelivery({ id: randomUUID() })]
    await post(smee.channel, first)
    await post(smee.channel, second)
    await post(smee.channel, githubDelivery({ body: '{"other":1}' }))
    await rig.stored(2)
    await rig.journal.flush()
    expect(
      (await summariesOf(rig.journal)).map(({ n, event, duplicates }) => [n, event, duplicates]),
    ).toEqual([
      [1, 'push', 1],
      [2, 'push', 0],
    ])
  })

  it('from a server that sends the bytes themselves is stored as it was sent', async () => {
    await using smee = await startGosmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    const body = '{"a": 12345678901234567890, "b": 1.0}\n'
    await post(smee.channel, githubDelivery({ body }))
    await rig.stored(1)
    const entry = await entryOf(rig.journal, 1)
    expect([textOf(entry), entry.restored?.how]).toEqual([body, 'raw'])
  })

  it("of Gitea's form hook keeps what JSON loses, through a server that reads forms", async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel, { provider: GITEA })
    await rig.status({ roundTrip: 'ok' })
    const payload = '{\n  "n": 12345678901234567890\n}'
    const form = new URLSearchParams({ payload }).toString()
    const { headers } = giteaDelivery({
      body: form,
      signed: payload,
      type: 'application/x-www-form-urlencoded',
    })
    const lowerCase = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
    smee.message({ ...lowerCase, body: JSON.parse(formThroughSmee(form)) })
    await rig.stored(1)
    const entry = await entryOf(rig.journal, 1)
    expect([textOf(entry), entry.restored?.how]).toEqual([form, 'form'])
  })
})

it('is logged as lost if it cannot be stored', async () => {
  await using smee = await startSmee()
  const error = new RelayError('storage', 'Delivery could not be stored')
  await using rig = await startTunnel(smee.channel, { intake: { receive: () => Promise.reject(error) } })
  await rig.status({ roundTrip: 'ok' })
  await post(smee.channel, githubDelivery())
  expect(await rig.logLine('lost')).toBe('a delivery from the tunnel was lost: Delivery could not be stored')
})

const ID = '72d3162e-cc78-11e3-81ab-4c9367dc0958'
const UNVERIFIABLE =
  'unverifiable through this tunnel (signed with another secret, or the server changed the bytes)'

describe('a message that is not a genuine delivery', () => {
  it.each([
    ['with a number that the server changed', { body: '{"n":12345678901234567890}' }, UNVERIFIABLE, ID],
    ['signed with another secret', { secret: 'another' }, UNVERIFIABLE, ID],
    [
      'signed with a secret that ends in a newline',
      { secret: `${SECRET}\n` },
      "the sender's secret ends in a newline, relay's does not",
      ID,
    ],
    [
      'not signed',
      { set: { 'X-Hub-Signature-256': undefined } },
      'invalid signature (there is no X-Hub-Signature-256: does the webhook have a secret at the code host?)',
      ID,
    ],
    [
      'without delivery id',
      { set: { 'X-GitHub-Delivery': undefined } },
      'the header x-github-delivery is missing, repeated or malformed',
      '(none)',
    ],
  ])('%s is refused with the reason', async (_, options, reason, id) => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery({ id: ID, ...options }))
    expect(await rig.logLine('refused')).toBe(
      `a tunnel message was refused: ${reason} (unproved: event push, delivery ${id}; relay show refused:1)`,
    )
    expect(await countOf(rig.journal)).toBe(0)
  })

  it('with its exact bytes and a wrong signature has an invalid signature', async () => {
    await using smee = await startGosmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery({ id: ID, secret: 'another' }))
    expect(await rig.logLine('refused')).toBe(
      `a tunnel message was refused: invalid signature (signed with another secret, or the body was changed on its way) (unproved: event push, delivery ${ID}; relay show refused:1)`,
    )
  })

  it('over the size limit is refused, or dropped before it is complete', async () => {
    await using smee = await startGosmee()
    await using rig = await startTunnel(smee.channel, { maxBody: 1000, limits: { event: 3000 } })
    await rig.status({ roundTrip: 'ok' })
    await post(smee.channel, githubDelivery({ id: ID, body: JSON.stringify('x'.repeat(1200)) }))
    expect(await rig.logLine('refused')).toBe(
      `a tunnel message was refused: over 1,000 bytes, the limit is 1,000 bytes. Raise --max-body, then redeliver it at the code host (unproved: event push, delivery ${ID}; relay show refused:1)`,
    )
    await post(smee.channel, githubDelivery({ body: JSON.stringify('x'.repeat(4000)) }))
    expect(await rig.logLine('dropped')).toBe(
      'the tunnel dropped a message: it is larger than --max-body allows',
    )
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
    expect(await countOf(rig.journal)).toBe(1)
  })

  it('is ignored if it is not a request', async () => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    for (const text of ['ready', '"ready"', '{"message":"connected"}', '[]']) smee.write(`data: ${text}\n\n`)
    await post(smee.channel, githubDelivery())
    await rig.stored(1)
    expect(rig.logged).toEqual([])
  })

  it.each([
    ['{', 'the message is not JSON'],
    ['{"body":{}}x', 'the message is not JSON'],
    ['{"body":{},"x-a":"\\u000', 'the message is not JSON'],
    [`{"body":${'['.repeat(2000)}`, 'JSON is nested more than 1000 deep'],
  ])('that is incomplete or malformed is refused: %.20s', async (text, reason) => {
    await using smee = await startSmee()
    await using rig = await startTunnel(smee.channel)
    await rig.status({ roundTrip: 'ok' })
    smee.write(`data: ${text}\n\n`)
    expect(await rig.logLine('refused')).toBe(
      `a tunnel message was refused: ${reason} (unproved: event (none), delivery (none); relay show refused:1)`,
    )
    expect(await countOf(rig.journal)).toBe(0)
  })
})

describe('a message with additional fields', () => {
  const body = '{"zen":"signed"}'
  const signed = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': 'a',
    'x-hub-signature-256': sign(SECRET, Buffer.from(body)),
    body: JSON.parse(body) as unknown,
  }

  it('is only a delivery: its path, query and target have no effect', async () => {
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
    expect((await entryOf(rig.journal, 1)).headers).toEqual([
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

  it('reaches only the intake, since the tunnel imports nothing else', () => {
    const files = readdirSync('src/tunnel').map((file) => readFileSync(path.join('src/tunnel', file), 'utf8'))
    const folders = files.flatMap((source) =>
      [...source.matchAll(/from '\.\.\/(\w+)\//g)].map(([, folder]) => folder),
    )
    const below = ['base', 'http', 'json', 'net', 'providers', 'store', 'webhook']
    expect(new Set(folders)).toEqual(new Set(below))
  })

  it('costs nothing without a tunnel: the client is loaded only for one', () => {
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
})
