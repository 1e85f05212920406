import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { Journal } from '../../src/journal/journal.js'
import type { Receipt } from '../../src/journal/types.js'
import { signDelivery } from '../../src/senders/proof.js'
import { schemeOf } from '../../src/senders/senders.js'
import { checkTunnel } from '../../src/serve/tunnel.js'
import { openDatabase } from '../../src/store/open.js'
import type { Source } from '../../src/senders/source.js'
import { clock } from '../kit/clock.js'
import { githubDelivery, type Header, post, type WebhookRequest } from '../kit/delivery.js'
import { requestOf, type Sender, SENDERS as ALL } from '../kit/senders.js'
import { gosmee, smee } from '../kit/smee.js'
import { type RigOptions, sourceOf, tunnel, working } from './tunnel-rig.js'

const TOKEN = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const NAME = 'own'
const ISSUE = '{"action":"opened","issue":{"number":1}}'
/** Those that send JSON: what else a tunnel's server passes on differs. A code host's shows its event. */
const SENDERS = Object.entries(ALL)
  .filter(([, { type = 'application/json' }]) => type.startsWith('application/json'))
  .map(([name, sender]) => [name, name === 'second' ? { ...sender, body: ISSUE } : sender] as const)
/** Their event is in a header alone, which is not signed. */
const UNPROVED = new Set(['gitlab', 'shopify', 'bitbucket', 'sentry', 'own'])
const senderOf = (name: string): Sender => ALL[name] ?? expect.unreachable()
const source = ({ scheme, secret }: Sender): Source => sourceOf(scheme, secret, NAME)
const signed = (sender: Sender, now = Date.now()) => requestOf(sender, now)

/** Copies of a request, each with another value in one header or all, with one more, or as a form. */
function relabelled({ headers, body }: WebhookRequest): WebhookRequest[] {
  const [type = ['', ''], ...lines] = headers
  const own = new Set(lines.map(([name]) => name.toLowerCase()))
  const more = 'webhook-id svix-id idempotency-key x-request-id x-github-event x-github-delivery'.split(' ')
  const other = ([name]: Header): Header => [name, randomUUID()]
  const variants = [
    lines,
    ...lines.map((line) => lines.map((each) => (each === line ? other(each) : each))),
    lines.map(other),
    ...more.filter((name) => !own.has(name)).map((name) => [...lines, other([name, ''])]),
  ]
  return [
    ...variants.map((each) => ({ headers: [type, ...each], body })),
    // A gosmee server passes on any type that has JSON's in it.
    {
      headers: [['Content-Type', 'application/x-www-form-urlencoded; was=application/json'], ...lines],
      body,
    },
  ]
}

const TIMED = 'hmac header=X-Sig time=X-Time id=X-Unique signed={timestamp}.{id}.{body}'
const JSON_LINE: Header = ['Content-Type', 'application/json']
const TARGET = '*=http://127.0.0.1:1'

/** A working tunnel before a journal, which has one target for every delivery. */
async function journalled(channel: string, source: Source, options: RigOptions = {}) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql)
  const receipts: Receipt[] = []
  const plan = { targets: [TARGET], ignoredBy: undefined, onDuplicate: 'if-failed' } as const
  const rig = await working(channel, {
    ...options,
    source,
    append: async (delivery) => void receipts.push(await journal.append(delivery, plan)),
  })
  return { rig, receipts, journal }
}

describe('a signed delivery of a source', () => {
  it.each(SENDERS)('runs once, however its headers are written: %s', async (name, sender) => {
    await using server = await gosmee()
    const { rig, receipts, journal } = await journalled(server.channel, source(sender))
    await using _ = rig
    const copies = relabelled(await signed(sender))
    for (const copy of copies) expect((await post(server.channel, copy)).status).toBe(202)
    await expect.poll(() => rig.stored.length + rig.refused.list().length).toBe(copies.length)
    const events = rig.stored.flatMap(({ event, restored }) => (restored?.unproved ? [] : [event]))
    expect(rig.stored[0]).toMatchObject({ provider: NAME, event: sender.event })
    expect(rig.stored[0]?.restored?.unproved === true).toBe(UNPROVED.has(name))
    expect(events.filter((event) => event !== sender.event)).toEqual([])
    expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect((await journal.counts()).get(TARGET)?.waiting).toBe(1)
  })

  it.each(['standard', 'gitlab', TIMED])('is new with another signed id: %s', async (scheme) => {
    const own = sourceOf(scheme, TOKEN, NAME)
    await using server = await smee()
    const { rig, receipts } = await journalled(server.channel, own)
    await using _ = rig
    for (const id of ['msg_1', 'msg_2', 'msg_1']) {
      const body = Buffer.from('{"a":1}')
      const lines = signDelivery(
        own.secrets.current,
        { id, body, now: Date.now() },
        schemeOf(own.sender.scheme),
      )
      const headers: Header[] = [JSON_LINE, ['X-Gitlab-Event', 'Push Hook'], ...lines]
      await post(server.channel, { headers, body })
    }
    await rig.has(3)
    expect(receipts.map(({ duplicate }) => duplicate)).toEqual([false, false, true])
  })

  it('that is not signed is refused with the name of its header, unread if it is long', async () => {
    await using server = await smee()
    await using rig = await working(server.channel, { source: sourceOf('standard', TOKEN) })
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
    await using rig = await working(server.channel, { source: source(sender), append, clock: time.now })
    await post(server.channel, await signed(sender, time.now() - 299_000))
    await rig.has(1)
    expect([tries, rig.refused.list()]).toEqual([2, []])
  })

  it.each([-301_000, 302_000])('of too long ago or too far ahead is refused: %i ms', async (drift) => {
    const time = clock(Date.now() - (Date.now() % 1000))
    await using server = await smee()
    await using rig = await working(server.channel, { source: source(sender), clock: time.now })
    await post(server.channel, await signed(sender, time.now() + drift))
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
  const check = (scheme: string, current: string, previous?: string) => {
    const secrets = {
      current: new Secret(current),
      previous: previous === undefined ? undefined : new Secret(previous),
    }
    return checkTunnel(
      { tunnel: 'https://smee.io', hubToken: undefined, sources: [{ name: NAME, scheme, secrets }] },
      undefined,
    )
  }

  // Others are refused by relay serve.
  it('is one whose previous secret is a token', async () => {
    const why = /^--tunnel cannot be used with the source own: its deliveries do not prove their body/
    await expect(check('gitlab', TOKEN, 'plain')).rejects.toThrow(why)
  })

  it.each(Object.values(ALL).map(({ scheme }) => scheme))(
    'is none whose signatures prove the body: %s',
    async (scheme) => {
      await expect(check(scheme, TOKEN)).resolves.toBeUndefined()
    },
  )
})
