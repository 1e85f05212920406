import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { Journal } from '../../src/journal/journal.js'
import type { Receipt } from '../../src/journal/types.js'
import { sign } from '../../src/schemes/proof.js'
import { checkTunnel } from '../../src/serve/tunnel.js'
import { openDatabase } from '../../src/store/open.js'
import type { Source } from '../../src/webhook/signature.js'
import { clock } from '../kit/clock.js'
import { githubDelivery, type Header, post, type WebhookRequest } from '../kit/delivery.js'
import { gosmee, smee } from '../kit/smee.js'
import { type RigOptions, sourceOf, tunnel } from './tunnel-rig.js'

const TOKEN = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const OWN = 'hmac header=X-Sig event=X-Kind id=X-Unique'
const TIMED = 'hmac header=X-Sig time=X-Time id=X-Unique signed={timestamp}.{id}.{body}'

interface Sender {
  readonly scheme: string
  readonly body: string
  /** Headers that are not signed, with what a stranger writes there instead. */
  readonly unsigned: Readonly<Record<string, readonly [genuine: string, other: string]>>
  readonly event: string
  /** Its event is in a header alone. */
  readonly unproved?: true
}

/** Every scheme that proves its body, with each header that says something and is not signed. */
const SENDERS: readonly Sender[] = [
  { scheme: 'standard', body: '{"type":"a.b"}', unsigned: {}, event: 'a.b' },
  { scheme: 'stripe', body: '{\n  "id": "evt_1",\n  "type": "a.b"\n}', unsigned: {}, event: 'a.b' },
  {
    scheme: 'slack',
    body: '{"type":"event_callback","event_id":"Ev1","event":{"type":"message","text":"&command=/x&payload=1"}}',
    unsigned: {},
    event: 'message',
  },
  {
    scheme: 'gitlab',
    body: '{"object_kind":"push"}',
    unsigned: { 'X-Gitlab-Event': ['Push Hook', 'Issue Hook'], 'Idempotency-Key': ['a', 'b'] },
    event: 'Push Hook',
    unproved: true,
  },
  {
    scheme: 'linear',
    body: `{"type":"Issue","action":"create","webhookTimestamp":${Date.now()}}`,
    unsigned: { 'Linear-Event': ['Issue', 'Comment'], 'Linear-Delivery': ['a', 'b'] },
    event: 'Issue.create',
  },
  {
    scheme: 'shopify',
    body: '{"id":1}',
    unsigned: { 'X-Shopify-Topic': ['orders/create', 'orders/paid'], 'X-Shopify-Webhook-Id': ['a', 'b'] },
    event: 'orders/create',
    unproved: true,
  },
  {
    scheme: 'bitbucket',
    body: '{"push":{}}',
    unsigned: {
      'X-Event-Key': ['repo:push', 'pullrequest:created'],
      'X-Request-UUID': ['a', 'b'],
      'X-Hook-UUID': ['h', 'i'],
    },
    event: 'repo:push',
    unproved: true,
  },
  {
    scheme: 'bitbucket',
    body: '{"eventKey":"pr:opened"}',
    unsigned: { 'X-Event-Key': ['pr:opened', 'repo:push'] },
    event: 'pr:opened',
  },
  {
    scheme: 'sentry',
    body: '{"action":"created"}',
    unsigned: { 'Sentry-Hook-Resource': ['issue', 'error'], 'Request-ID': ['a', 'b'] },
    event: 'issue.created',
    unproved: true,
  },
  { scheme: 'pagerduty', body: '{"event":{"id":"1","event_type":"a.b"}}', unsigned: {}, event: 'a.b' },
  {
    scheme: 'github',
    body: '{"action":"opened","issue":{"number":1}}',
    unsigned: { 'X-GitHub-Event': ['issues', 'push'], 'X-GitHub-Delivery': [randomUUID(), randomUUID()] },
    event: 'issues.opened',
  },
  {
    scheme: OWN,
    body: '{"a":1}',
    unsigned: { 'X-Kind': ['a', 'b'], 'X-Unique': ['1', '2'] },
    event: 'a',
    unproved: true,
  },
  { scheme: TIMED, body: '{"a":1}', unsigned: {}, event: 'webhook' },
]

function senderOf(scheme: string): Sender {
  const sender = SENDERS.find((each) => each.scheme === scheme)
  if (!sender) throw new Error(`no sender ${scheme}`)
  return sender
}

const NAME = 'own'
const ID = 'msg_1'

function signed(sender: Sender, id = ID, now = Date.now()): WebhookRequest & { readonly source: Source } {
  const source = sourceOf(sender.scheme, TOKEN, NAME)
  const body = Buffer.from(sender.body)
  const headers: Header[] = [
    ['Content-Type', 'application/json'],
    ...Object.entries(sender.unsigned).map(([name, [genuine]]): Header => [name, genuine]),
    ...sign(source.secrets.current, { id, body, now }, source.scheme),
  ]
  return { source, headers, body }
}

/** Copies of a signed request, each with something changed that is not signed. */
function relabelled({ unsigned }: Sender, { headers, body }: WebhookRequest): WebhookRequest[] {
  const others = Object.entries(unsigned).map(([name, [, other]]) => [name, other] as const)
  const swap = (changed: readonly (readonly [string, string])[]): WebhookRequest => {
    const names = new Set(changed.map(([name]) => name))
    return { body, headers: [...headers.filter(([name]) => !names.has(name)), ...changed] }
  }
  const EXTRA = [
    'webhook-id',
    'svix-id',
    'idempotency-key',
    'x-request-id',
    'x-github-event',
    'x-github-delivery',
  ]
  const own = new Set(headers.map(([name]) => name.toLowerCase()))
  return [
    { headers, body },
    ...others.map((one) => swap([one])),
    swap(others),
    ...EXTRA.filter((name) => !own.has(name)).map((name) => swap([[name, randomUUID()]])),
    // A gosmee server passes on any type that has JSON's in it.
    swap([['Content-Type', 'application/x-www-form-urlencoded; was=application/json']]),
  ]
}

const TARGET = '*=http://127.0.0.1:1'

/** A tunnel before a journal, which has one target for every delivery. */
async function journalled(channel: string, source: Source, options: RigOptions = {}) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql, { onChange: () => {}, observer: () => undefined })
  const receipts: Receipt[] = []
  const plan = { targets: [TARGET], ignoredBy: undefined, onDuplicate: 'if-failed' } as const
  const rig = await tunnel(channel, {
    ...options,
    source,
    append: async (delivery) => void receipts.push(await journal.append(delivery, plan)),
  })
  return { rig, receipts, journal }
}

describe('a signed delivery of a source', () => {
  it.each(SENDERS)('runs once, however its headers are written: $scheme', async (sender) => {
    await using server = await gosmee()
    const request = signed(sender)
    const { rig, receipts, journal } = await journalled(server.channel, request.source)
    await using _ = rig
    await rig.status({ roundTrip: 'ok' })
    const copies = relabelled(sender, request)
    for (const copy of copies) expect((await post(server.channel, copy)).status).toBe(202)
    await expect.poll(() => rig.stored.length + rig.refused.list().length).toBe(copies.length)
    const events = rig.stored.flatMap(({ event, restored }) => (restored?.unproved ? [] : [event]))
    expect(rig.stored[0]).toMatchObject({ provider: NAME, event: sender.event })
    expect(rig.stored[0]?.restored?.unproved).toBe(sender.unproved)
    expect(events.filter((event) => event !== sender.event)).toEqual([])
    expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect((await journal.counts()).get(TARGET)?.waiting).toBe(1)
  })

  it.each(['standard', 'gitlab', TIMED])('is new with another signed id: %s', async (scheme) => {
    const sender = senderOf(scheme)
    await using server = await smee()
    const { rig, receipts } = await journalled(server.channel, signed(sender).source)
    await using _ = rig
    await rig.status({ roundTrip: 'ok' })
    for (const id of [ID, 'msg_2', ID]) await post(server.channel, signed(sender, id))
    await rig.has(3)
    expect(receipts.map(({ duplicate }) => duplicate)).toEqual([false, false, true])
  })

  it('takes its id from the header that is signed', async () => {
    const source = sourceOf('standard', TOKEN)
    const body = Buffer.from('{"type":"a"}')
    const headers = sign(source.secrets.current, { id: ID, body, now: Date.now() }, source.scheme)
    const svix = headers.map(([name, value]): Header => [name.replace(/^webhook/i, 'svix'), value])
    await using server = await gosmee()
    await using rig = await tunnel(server.channel, { source })
    await rig.status({ roundTrip: 'ok' })
    await post(server.channel, {
      headers: [['Content-Type', 'application/json'], ['webhook-id', 'made-up'], ...svix],
      body,
    })
    await rig.has(1)
    expect(rig.stored[0]).toMatchObject({ deliveryId: ID, restored: { how: 'raw', repeatable: true } })
  })

  it('is restored behind a smee server, and refused with the reason where it cannot be', async () => {
    const sender = senderOf('stripe')
    await using server = await smee()
    await using rig = await tunnel(server.channel, { source: signed(sender).source })
    await rig.status({ roundTrip: 'ok' })
    await post(server.channel, signed(sender))
    await rig.has(1)
    expect(Buffer.from(rig.stored[0]?.body ?? []).toString()).toBe(sender.body)
    await post(server.channel, signed({ ...sender, body: '{"id":"evt_1","amount":1.0}' }))
    expect(await rig.says('refused')).toContain(
      ': unverifiable through this tunnel (signed with another secret, or the server changed the bytes) (unproved: ',
    )
  })

  it('that is not signed is refused with the name of its header, unread if it is long', async () => {
    await using server = await smee()
    await using rig = await tunnel(server.channel, { source: sourceOf('standard', TOKEN) })
    await rig.status({ roundTrip: 'ok' })
    await post(
      server.channel,
      githubDelivery({
        body: JSON.stringify({ a: 'x'.repeat(40_000) }),
        set: { 'X-Hub-Signature-256': undefined },
      }),
    )
    expect(await rig.says('refused')).toBe(
      'a tunnel message was refused: invalid signature (there is no Webhook-Signature or Svix-Signature, or it is malformed)',
    )
    expect(rig.refused.list()).toEqual([])
  })
})

describe('a signed time', () => {
  const sender = senderOf('stripe')

  it('counts from when the message arrived, not from when storage took it', async () => {
    const time = clock(Date.now())
    let tries = 0
    const append = async (): Promise<void> => {
      if (tries++ > 0) return
      time.advance(3_600_000)
      throw new RelayError('storage', 'The disk is full')
    }
    await using server = await smee()
    await using rig = await tunnel(server.channel, { source: signed(sender).source, append, clock: time.now })
    await rig.status({ roundTrip: 'ok' })
    await post(server.channel, signed(sender, ID, time.now() - 299_000))
    await rig.has(1)
    expect([tries, rig.refused.list()]).toEqual([2, []])
  })

  it.each([-301_000, 302_000])('of too long ago or too far ahead is refused: %i ms', async (drift) => {
    const time = clock(Date.now() - (Date.now() % 1000))
    await using server = await smee()
    await using rig = await tunnel(server.channel, { source: signed(sender).source, clock: time.now })
    await rig.status({ roundTrip: 'ok' })
    await post(server.channel, signed(sender, ID, time.now() + drift))
    expect(await rig.says('refused')).toContain(
      `: its signed time is ${Math.abs(drift) / 1000} s ${drift < 0 ? 'behind' : 'ahead of'} this machine's clock`,
    )
    expect(rig.stored).toEqual([])
  })
})

describe('channels', () => {
  it('are made for each source on the server of the code host, and remembered', async () => {
    await using server = await smee()
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    const urlOf = async (address: string, name: string): Promise<string> => {
      await using rig = await tunnel(address, { store, source: sourceOf('stripe', TOKEN, name) })
      return String((await rig.status({ state: 'connected' })).url)
    }
    const first = await urlOf(server.url, 'stripe')
    const host = await urlOf(server.url, 'github')
    const billing = await urlOf('new', 'billing')
    expect(new Set([first, host, billing]).size).toBe(3)
    for (const url of [first, host, billing]) expect(url.startsWith(`${server.url}/`)).toBe(true)
    expect([await urlOf(server.url, 'stripe'), await urlOf(server.url, 'billing')]).toEqual([first, billing])
    expect(await urlOf('new', 'stripe')).not.toBe(first)
    expect(await store.list('tunnel-channel')).toEqual([
      'tunnel-channel',
      'tunnel-channel/billing',
      'tunnel-channel/stripe',
    ])
  })
})

describe('a source that cannot have a tunnel', () => {
  const secrets = (current: string, previous?: string) => ({
    current: new Secret(current),
    ...(previous !== undefined && { previous: new Secret(previous) }),
  })
  const SERVER = 'https://smee.io'
  const UNPROVED =
    /^--tunnel cannot be used with the source own: its deliveries do not prove their body, .* without --tunnel/

  it.each<[scheme: string, tunnel: string, current: string, previous: string | undefined, why: RegExp]>([
    ['token header=X-Token', SERVER, 'a', undefined, UNPROVED],
    ['none', SERVER, '', undefined, UNPROVED],
    [
      'gitlab',
      SERVER,
      'plain',
      undefined,
      /do not prove their body.* Set a signing token there \(whsec_…\) and here/,
    ],
    ['gitlab', 'new', TOKEN, 'plain', UNPROVED],
    [
      'stripe',
      `${SERVER}/Kf3v`,
      'a',
      undefined,
      /^--tunnel names one channel.* For own, .* --tunnel https:\/\/smee\.io, or/,
    ],
  ])('is named, with what to do: %s, %s', (scheme, address, current, previous, why) => {
    const sources = [{ name: NAME, scheme, secrets: secrets(current, previous) }]
    const check = () => checkTunnel({ tunnel: address, sources })
    expect(check).toThrow(expect.objectContaining({ kind: 'usage', message: expect.stringMatching(why) }))
    expect(() => checkTunnel({ tunnel: undefined, sources })).not.toThrow()
  })

  it.each(SENDERS.map(({ scheme }) => scheme))('is none whose signatures prove the body: %s', (scheme) => {
    const sources = [{ name: NAME, scheme, secrets: secrets(TOKEN) }]
    expect(() => checkTunnel({ tunnel: SERVER, sources })).not.toThrow()
    expect(() => checkTunnel({ tunnel: 'https://smee.io/Kf3v', sources: [] })).not.toThrow()
  })
})
