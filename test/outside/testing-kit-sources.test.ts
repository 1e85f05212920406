import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { DEFAULTS, mount, Secret } from 'webhook-relay'
import {
  events,
  fixtureOf,
  loadFixture,
  loadFixtures,
  signedRequest,
  startRelay,
  TEST_SECRET,
} from 'webhook-relay/testing'
import { emptyFolder } from '../kit/folder.js'
import { SENDERS } from './source-senders.js'

const SENT = SENDERS.filter(({ trigger }) => trigger.length === 1)
const sources = Object.fromEntries(SENDERS.map(({ name, scheme }) => [name, scheme]))

/** Linear signs the time in the body. */
const untimed = (body: string): string => body.replace(/"webhookTimestamp":\d+/, '')

describe.each(SENT)(
  'the testing kit, for $name ($scheme)',
  ({ name, scheme, secret, event, trigger, isToken }) => {
    const [wanted = ''] = trigger

    it('makes requests that a relay takes, and none that is tampered with', async () => {
      await using relay = await startRelay({ secret, sources: { [name]: scheme } })
      const fixture = fixtureOf(wanted, { scheme, source: name })
      // A code host's event is apart from its action.
      const own = scheme === 'github' ? 'issues' : event
      expect(fixture).toMatchObject({ provider: scheme, source: name, scheme, event: own })
      const delivery = await relay.deliver(fixture)
      expect(delivery).toMatchObject({ provider: name, event, action: null, verifiedBy: 'current' })
      expect(untimed(Buffer.from(delivery.body).toString())).toBe(untimed(String(fixture.body)))
      const url = `${relay.url}/webhook/${name}`
      expect((await fetch(signedRequest(fixture, { secret, url }))).status).toBe(200)
      for (const tamper of ['signature', ...(isToken ? [] : (['body'] as const))] as const)
        expect((await fetch(signedRequest(fixture, { secret, url, tamper }))).status).toBe(401)
      expect((await fetch(signedRequest(fixture, { secret: 'another', url }))).status).toBe(401)
    })

    it('makes another one each time', () => {
      const [one, other] = [1, 2].map(() => fixtureOf(wanted, { scheme }))
      expect(one?.delivery).not.toBe(other?.delivery)
    })
  },
)

describe('fixtureOf with a body', () => {
  it('writes an object as its sender does, and sends text as it is', async () => {
    const stripe = { scheme: 'stripe', body: { id: 'evt_1', type: 'x.y', a: {} } }
    expect(fixtureOf('x.y', stripe).body).toMatch(
      /^\{\n  "id": "evt_[0-9a-f]{32}",\n  "type": "x.y",\n  "a": \{\}\n\}$/,
    )
    const text = '{"type": "x.y",  "n": 12345678901234567890}'
    expect(fixtureOf('x.y', { scheme: 'standard', body: text }).body).toBe(text)
    await using relay = await startRelay({ sources })
    const { body } = await relay.deliver(fixtureOf('x.y', { scheme: 'standard', body: text }))
    expect(Buffer.from(body).toString()).toBe(text)
    const door = 'hmac header=X-Door event=X-Event'
    const made = fixtureOf('bell', { scheme: door, source: 'door', body: 'ding' })
    expect(made).toMatchObject({ provider: 'hmac', source: 'door', scheme: door, body: 'ding' })
    const request = signedRequest(made, { secret: 's' })
    expect([request.headers.get('x-event'), request.headers.get('x-door')]).toEqual([
      'bell',
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ])
  })

  it('sends bytes as they are', async () => {
    const door = 'hmac header=X-Door event=X-Event'
    const bytes = Uint8Array.of(0x89, 0x50, 0, 0xff, 0x0d)
    await using relay = await startRelay({ sources: { door } })
    const ring = fixtureOf('ring', { scheme: door, source: 'door', body: bytes })
    expect([...(await relay.deliver(ring)).body]).toEqual([...bytes])
    const json = fixtureOf('push', { body: Buffer.from('{"ref": "refs/heads/x"}') })
    expect(json.body).toBe('{"ref": "refs/heads/x"}')
  })

  it.each<[string, unknown]>([
    ['a Map', new Map([[1, 2]])],
    ['a Set', new Set([1])],
    ['a Date', new Date(0)],
    ['a URL', new URL('http://x/')],
    ['numbers of two bytes', new Uint16Array(1)],
    ['a list', [1]],
    ['a number', 1],
  ])('refuses %s, which no sender writes', (_, body) => {
    const message = 'fixtureOf: the option body must be an object of JSON, or the exact text or bytes'
    expect(() => Reflect.apply(fixtureOf, undefined, ['push', { body }])).toThrow(message)
  })

  it('of a scheme without a place for events is a webhook', async () => {
    const scheme = 'hmac header=X-Signature prefix=sha256='
    expect(() => fixtureOf('bell', { scheme, body: 'ding' })).toThrow(
      `The scheme ${scheme} has no place for an event: write webhook in place of bell`,
    )
    await using relay = await startRelay({ sources: { door: scheme }, exec: ['door/*=cat'] })
    const rung = await relay.deliver(fixtureOf('webhook', { scheme, source: 'door', body: 'ding' }))
    expect([rung.event, rung.attempts.map(({ answer }) => answer)]).toEqual(['webhook', ['ding']])
  })

  it.each([
    ['jira', 'bitbucket or jira-app'],
    ['standard-webhooks', 'standard'],
    ['standardwebhooks', 'standard'],
    ['svix-webhooks', undefined],
  ])('of the scheme %s says what its sender has: %s', async (scheme, meant) => {
    const near = meant === undefined ? '' : ` (did you mean ${meant}?)`
    expect(() => events({ scheme })).toThrow(`relay knows no scheme "${scheme}"${near}`)
    const sources = [{ name: 'a', scheme, secrets: { current: new Secret('s') } }]
    const folder = { folder: '', store: 'memory', allowedHosts: [], routes: [] } as const
    const webhookSecrets = { current: new Secret('s') }
    const settings = { ...DEFAULTS, ...folder, providerUrl: 'https://github.com', webhookSecrets, sources }
    await expect(mount(settings)).rejects.toThrow(
      `The setting sources[0].scheme must be a scheme that relay knows, not "${scheme}"${near}`,
    )
  })

  it('of an event that the body contradicts, or a scheme that nobody has, is refused', () => {
    const make = (scheme: string) => () => fixtureOf('a', { scheme, body: { type: 'b' } })
    expect(make('stripe')).toThrow('The event is a, but the body is of b')
    expect(make('strpe')).toThrow('relay knows no scheme "strpe"')
    expect(() => fixtureOf('x', { scheme: 'stripe' })).toThrow('There is no example of "x"')
  })
})

describe('loadFixture with a scheme', () => {
  it('reads a bare payload, and any fixture that comes with relay', async () => {
    const file = path.join(emptyFolder(), 'paid.json')
    writeFileSync(file, '{"type":"invoice.paid"}\n')
    const bare = await loadFixture(file, { event: 'invoice.paid', scheme: 'stripe' })
    expect(bare).toMatchObject({
      provider: 'stripe',
      source: 'stripe',
      scheme: 'stripe',
      event: 'invoice.paid',
    })
    await using relay = await startRelay({ sources })
    expect(await relay.deliver(bare)).toMatchObject({ provider: 'stripe', event: 'invoice.paid' })
    const names = [...new Set(SENT.map(({ scheme }) => scheme))].filter((scheme) => scheme !== 'github')
    for (const scheme of names)
      for (const { name, fixture } of await loadFixtures(`webhook-relay/fixtures/${scheme}`)) {
        expect([name, await relay.deliver(fixture)]).toMatchObject([
          name,
          { provider: scheme, event: fixture.event },
        ])
        // Signed at noon on 31 January 2026, and again now.
        expect(signedRequest(fixture, { secret: TEST_SECRET }).method).toBe('POST')
      }
  })
})

it('a test gets each of two equal deliveries of a sender without ids, and one that signs its address', async () => {
  const scheme = 'hmac header=X-Sign signed={url}{body} event=$.kind'
  await using relay = await startRelay({ secret: 's3cret', sources: { bell: scheme } })
  const fixture = fixtureOf('ring', { scheme, source: 'bell', body: { kind: 'ring' } })
  const all = [await relay.deliver(fixture), await relay.deliver(fixture)]
  expect(all).toMatchObject([
    { n: 1, provider: 'bell', event: 'ring', duplicates: 0 },
    { n: 2, provider: 'bell', event: 'ring', duplicates: 0 },
  ])
})
