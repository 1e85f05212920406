import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { post, type WebhookRequest } from '../kit/delivery.js'
import { fails } from '../kit/run.js'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { requestOf, secretsOf, SENDERS, type Sender } from '../kit/senders.js'
import { smee } from '../kit/smee.js'
import { objects } from './example.js'
import { fresh } from './fixture.js'

const MINUTE = 60_000
const JSON_LINE = ['Content-Type', 'application/json'] as const
const ring: WebhookRequest = {
  headers: [JSON_LINE, ['X-Token', 'bell-secret-0123456789']],
  body: Buffer.from('{"kind":"ring"}'),
}
const RING = 'token header=X-Token event=$.kind'

describe('requests of a sender with equal bodies and no id', () => {
  const here = fresh(() =>
    place({
      host: 'none',
      env: { RELAY_SOURCE_BELL_SECRET: 'bell-secret-0123456789', ...secretsOf(Object.entries(SENDERS)) },
    }),
  )
  const target = fresh(() => receiver())

  /** Has relay take these requests, one after the other, and returns the numbers of the entries. */
  async function taken(scheme: string, all: readonly (() => WebhookRequest)[], now?: () => number) {
    const flags = ['--source', `bell=${scheme}`, '--forward', `bell/*=${target.url}`]
    const relay = await here.serveWith(now ? { seams: { clock: now } } : {}, ...flags)
    for (const request of all)
      expect(await post(`${relay.address}/webhook/bell`, request())).toMatchObject({ status: 200 })
    // Duplicates are counted a moment later.
    const counted = async () => {
      const found = objects((await here.run('log', '--source', 'bell', '--json')).out)
      return found.map(({ n, duplicates, delivery }) => ({ n, duplicates: Number(duplicates), delivery }))
    }
    await expect
      .poll(async () => (await counted()).reduce((sum, { duplicates }) => sum + 1 + duplicates, 0))
      .toBe(all.length)
    return counted()
  }

  it('are deliveries of their own, each of which reaches the target', async () => {
    const found = await taken(RING, [() => ring, () => ring, () => ring])
    await target.has(3)
    expect(found.map(({ duplicates }) => duplicates)).toEqual([0, 0, 0])
    expect(new Set(found.map(({ delivery }) => delivery)).size).toBe(3)
    expect(target.received.map(({ body }) => body.toString())).toEqual(Array(3).fill('{"kind":"ring"}'))
  })

  const lacking = Object.entries(SENDERS).filter(
    ([, { id, scheme }]) => id === undefined && scheme !== 'github',
  )

  it.each(lacking)('are that for %s, too', async (name, sender: Sender) => {
    const request = await requestOf(sender, Date.now())
    const source = `bell=${sender.scheme}`
    const env = { RELAY_SOURCE_BELL_SECRET: sender.secret }
    const relay = await here.serveWith({ env }, '--source', source)
    for (let i = 0; i < 2; i++)
      expect([name, (await post(`${relay.address}/webhook/bell`, request)).status]).toEqual([name, 200])
    expect(objects((await here.run('log', '--json')).out)).toHaveLength(2)
  })

  it('are one delivery with id=digest, until its window ends', async () => {
    const time = clock(Date.now())
    const later = (ms: number) => () => {
      time.advance(ms)
      return ring
    }
    const found = await taken(
      `${RING} id=digest:5m`,
      [() => ring, later(4 * MINUTE), later(2 * MINUTE), later(4 * MINUTE), later(2 * MINUTE)],
      time.now,
    )
    expect(found.map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [1, 1],
      [2, 1],
      [3, 0],
    ])
  })

  it('are one delivery for ten minutes with id=digest alone, and other bodies are others', async () => {
    const time = clock(Date.now())
    const other = { ...ring, body: Buffer.from('{"kind":"knock"}') }
    const found = await taken(
      `${RING} id=digest`,
      [
        () => ring,
        () => other,
        () => {
          time.advance(9 * MINUTE)
          return ring
        },
        () => {
          time.advance(2 * MINUTE)
          return ring
        },
      ],
      time.now,
    )
    expect(found.map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [1, 1],
      [2, 0],
      [3, 0],
    ])
  })

  it('are others with another query', async () => {
    const relay = await here.serve('--source', `bell=${RING} id=digest`)
    for (const query of ['?door=1', '?door=2', '?door=1', ''])
      expect((await post(`${relay.address}/webhook/bell${query}`, ring)).status).toBe(200)
    const counts = async () =>
      objects((await here.run('log', '--json')).out).map(({ duplicates }) => Number(duplicates))
    await expect.poll(counts).toEqual([1, 0, 0])
    const found = objects((await here.run('log', '--json')).out)
    expect(found.map(({ query }) => query)).toEqual(['door=1', 'door=2', null])
  })

  it('are one delivery for a named sender whose id is set to that', async () => {
    const body = Buffer.from('{"id":7}')
    const scheme = 'hmac header=X-Signature id=digest'
    const { sign } = SENDERS['plain'] ?? never()
    const headers = [JSON_LINE, ...(await sign(body.toString(), 'bell-secret-0123456789', 0))]
    const found = await taken(scheme, [() => ({ headers, body }), () => ({ headers, body })])
    expect(found).toMatchObject([{ n: 1, duplicates: 1 }])
  })

  it('get no id of relay from relay replay', async () => {
    await taken(RING, [() => ring])
    await target.has(1)
    expect(await here.run('replay', '1', '--to', target.url)).toMatchObject({ code: 0 })
    await target.has(2)
    const names = target.received.map(({ headers }) =>
      headers.map(([name]) => name.toLowerCase()).filter((name) => /id|delivery/.test(name)),
    )
    expect(names).toEqual([[], []])
  })

  it('count once through a tunnel, since anybody can send a copy there', async () => {
    await using server = await smee()
    const { sign } = SENDERS['plain'] ?? never()
    const env = { RELAY_SOURCE_SHOP_SECRET: 's3cret' }
    const relay = await here.serveWith(
      { env },
      '--source',
      'shop=hmac header=X-Signature',
      '--tunnel',
      server.url,
    )
    const own = await relay.object({ type: 'tunnel', state: 'connected', source: 'shop', roundTrip: 'ok' })
    const headers = [JSON_LINE, ...(await sign('{"kind":"ring"}', 's3cret', 0))]
    const request = { headers, body: Buffer.from('{"kind":"ring"}') }
    await post(String(own['url']), request)
    await relay.object({ type: 'delivery', n: 1, duplicate: false })
    await post(String(own['url']), request)
    expect(await relay.object({ type: 'delivery', n: 1, duplicate: true })).toMatchObject({ source: 'shop' })
  })
})

describe('the rule for duplicates of a source', () => {
  const here = fresh(() =>
    place({ host: 'none', env: { RELAY_SOURCE_BELL_SECRET: 'bell-secret-0123456789' } }),
  )
  const target = fresh(() => receiver())
  const known = (id: string): WebhookRequest => ({ ...ring, headers: [...ring.headers, ['X-Id', id]] })

  it.each([
    ['always', 3],
    ['never', 1],
    ['if-failed', 1],
  ])('is its own: on-duplicate=%s', async (rule, times) => {
    const other = rule === 'always' ? 'never' : 'always'
    const source = `bell=${RING} id=X-Id on-duplicate=${rule}`
    const relay = await here.serve(
      '--source',
      source,
      '--on-duplicate',
      other,
      '--forward',
      `bell/*=${target.url}`,
    )
    for (let i = 0; i < 3; i++) {
      expect(await post(`${relay.address}/webhook/bell`, known('one'))).toMatchObject({ status: 200 })
      if (i < times) await target.has(i + 1)
    }
    expect(await post(`${relay.address}/webhook/bell`, known('two'))).toMatchObject({ status: 200 })
    await target.has(times + 1)
    expect(target.received).toHaveLength(times + 1)
  })

  it('can be set for a sender with a name, and for a second code host', async () => {
    const env = { RELAY_SOURCES: 'billing=stripe on-duplicate=always\nhub=github on-duplicate=never' }
    const { out } = await here.runWith({ env }, 'source', 'list', '--json')
    const [billing, hub] = objects(out)
    expect([billing, hub]).toMatchObject([
      { name: 'billing', scheme: 'stripe on-duplicate=always' },
      { name: 'hub', scheme: 'github on-duplicate=never' },
    ])
  })

  it.each([
    ['bell=stripe on-duplicate=sometimes', 'needs on-duplicate= with if-failed, always or never'],
    [
      'bell=stripe header=X',
      'takes no parts but id=digest, on-duplicate= and, if it signs its address, url=',
    ],
    ['bell=token header=X-Token id=digest:soon', 'needs id= with digest:<duration>, such as digest:10m'],
    ['bell=token header=X-Token id=digest:0s', 'needs id= with digest:<duration>, such as digest:10m'],
  ])('is refused where it is none: %s', async (source, why) => {
    const name = source.split(/[= ]/)[1]
    expect(await here.run('serve', '--port', '0', '--source', source)).toEqual(
      fails(2, `--source: The scheme ${name} ${why}`),
    )
  })
})

function never(): never {
  throw new Error('there is no such sender')
}
