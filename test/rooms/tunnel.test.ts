import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { sendOnce, type SendOnce } from '../../src/net/client.js'
import { openDatabase } from '../../src/store/open.js'
import type { TunnelOptions } from '../../src/tunnel/tunnel.js'
import { type DeliveryOptions, githubDelivery, post, SECRET, sign } from '../kit/delivery.js'
import { stalling } from '../kit/network.js'
import { receiver } from '../kit/receiver.js'
import { gosmee, smee } from '../kit/smee.js'
import type { TunnelServer } from '../kit/tunnel-server.js'
import { tunnel, working } from './tunnel-rig.js'

/** A signed event whose body has a number. */
function numbered(n: number, bytes = 100): string {
  const body = JSON.stringify({ n, text: 'x'.repeat(bytes) })
  const signature = sign(SECRET, body)
  return `data: {"x-github-event":"push","x-github-delivery":"${randomUUID()}","x-hub-signature-256":"${signature}","body":${body}}\n\n`
}

/** The numbers from `start` to before `end`. */
const numbers = (end: number, start = 0): number[] => Array.from({ length: end - start }, (_, i) => start + i)
const several = (end: number, start = 0): string =>
  numbers(end, start)
    .map((n) => numbered(n))
    .join('')

describe('a message', () => {
  const UNVERIFIABLE =
    'unverifiable through this tunnel (signed with another secret, or the server changed the bytes)'
  const NOT_JSON = 'the message is not JSON, or is far over --max-body'
  const ID = '72d3162e-cc78-11e3-81ab-4c9367dc0958'

  const UNSIGNED =
    'invalid signature (there is no X-Hub-Signature-256: does the webhook have a secret at the code host?)'
  const NO_ID = 'the header x-github-delivery is missing, repeated or malformed'
  const NEWLINE = "the sender's secret ends in a newline, relay's does not"

  it.each<[DeliveryOptions, reason: string, id?: string]>([
    [{ body: '{"n":12345678901234567890}' }, UNVERIFIABLE],
    [{ secret: 'another' }, UNVERIFIABLE],
    [{ secret: `${SECRET}\n` }, NEWLINE],
    [{ set: { 'X-Hub-Signature-256': undefined } }, UNSIGNED],
    [{ set: { 'X-GitHub-Delivery': undefined } }, NO_ID, '(none)'],
  ])('is refused with the reason: %j', async (options, reason, id = ID) => {
    await using server = await smee()
    await using rig = await working(server.channel)
    await post(server.channel, githubDelivery({ id: ID, ...options }))
    expect(await rig.says('refused')).toBe(
      `a tunnel message was refused: ${reason} (unproved: event push, delivery ${id}; relay show refused:1)`,
    )
    expect(rig.stored).toEqual([])
  })

  it.each([
    ['{', NOT_JSON],
    ['{"body":{}}x', NOT_JSON],
    [`{"body":${'['.repeat(2000)}`, 'JSON is nested more than 1000 deep'],
    [`{"body":${'['.repeat(2000)}${']'.repeat(2000)}}`, 'JSON is nested more than 1000 deep'],
    [`{"body":{},"x-a":[${'"abcdefghi",'.repeat(2000)}"a"]}`, 'more headers than HTTP accepts'],
  ])('that is malformed is refused (%#)', async (text, reason) => {
    await using server = await smee()
    await using rig = await working(server.channel)
    server.write(`data: ${text}\n\n`)
    expect(await rig.says('refused')).toBe(
      `a tunnel message was refused: ${reason} (unproved: event (none), delivery (none); relay show refused:1)`,
    )
    const proof = `{"x-hub-signature-256":"sha256=${'0'.repeat(64)}",`
    server.write(`data: ${text.replace('{', proof)}\n\n`)
    await expect.poll(() => rig.refused.list().length).toBe(2)
    expect(await rig.refused.get(2)?.reason()).toBe(text === '{' ? NOT_JSON : reason)
  })

  it('over the size limit is refused', async () => {
    await using server = await gosmee()
    await using rig = await working(server.channel, { maxBody: 1000 })
    await post(server.channel, githubDelivery({ id: ID, body: JSON.stringify('x'.repeat(1200)) }))
    expect(await rig.says('refused')).toContain(
      ': over 1,000 bytes, the limit is 1,000 bytes. Raise --max-body, then redeliver it at the code host (',
    )
  })

  it.each(['\n\n', '\r\n\r\n'])('that is larger than all others costs only itself (%j)', async (end) => {
    await using server = await smee()
    await using rig = await working(server.channel, { limits: { message: 100_000 } })
    const seen = rig.statuses.length
    const large = numbered(1, 300_000).trimEnd()
    for (let at = 0; at < large.length; at += 50_000) {
      server.write(large.slice(at, at + 50_000))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    // Also if the line that ends it comes in two parts.
    server.write(end.slice(0, -1))
    await new Promise((resolve) => setTimeout(resolve, 20))
    server.write(end.slice(-1) + numbered(2) + numbered(3))
    await rig.has(2)
    expect(rig.numbers()).toEqual([2, 3])
    expect(await rig.says('refused')).toContain(NOT_JSON)
    expect(rig.statuses.length).toBe(seen)
  })

  it('is only a delivery: its path, query and target have no effect', async () => {
    const body = '{"zen":"signed"}'
    const { headers } = githubDelivery({ body, id: 'a', hook: '7' })
    await using server = await smee()
    await using rig = await working(server.channel)
    server.message({
      ...Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
      body: JSON.parse(body),
      ':path': '/api/merge',
      path: '/auth/token/ada',
      target: { exec: 'touch /tmp/x' },
      query: { path: '/api/comment' },
      authorization: 'Bearer x',
      'x-forwarded-for': '1.2.3.4',
      'bad name': 'x',
      'x-lines': 'a\r\nX-Injected: b',
      'x-unicode': '\u{1F600}',
      constructor: 'x',
      ['__proto__']: 'x',
    })
    await rig.has(1)
    expect(rig.stored[0]?.headers).toEqual([
      ...headers,
      ['Path', '/auth/token/ada'],
      ['Constructor', 'x'],
      ['__proto__', 'x'],
    ])
  })
})

describe('a burst', () => {
  const unsigned = `data: {"x-github-event":"push","body":{"text":"${'x'.repeat(1000)}"}}\n\n`
  const forged = `data: {"x-hub-signature-256":"sha256=${'0'.repeat(64)}","body":{}}\n\n`

  it('is kept whole and in order, also among forged and unsigned messages', async () => {
    await using server = await smee()
    await using rig = await working(server.channel)
    for (const n of numbers(500)) server.write(numbered(n, n % 50 === 7 ? 50_000 : 500))
    for (let n = 500; n < 520; n++) server.write(`${unsigned.repeat(200)}${numbered(n)}${forged.repeat(20)}`)
    await rig.has(520)
    expect(rig.numbers()).toEqual(numbers(520))
    expect(rig.logged.filter((line) => line.includes('was refused')).length).toBeLessThan(20)
  })

  it('is not read while too much waits, nor lost', async () => {
    await using server = await smee()
    const disk = new AbortController()
    const append = async (): Promise<void> => {
      if (!disk.signal.aborted) await new Promise((resolve) => disk.signal.addEventListener('abort', resolve))
    }
    await using rig = await working(server.channel, { append, limits: { waiting: 500_000 } })
    for (const n of numbers(100)) {
      server.write(numbered(n, 200_000))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const unsent = server.unsent()
    disk.abort()
    await rig.has(100)
    expect(rig.numbers()).toEqual(numbers(100))
    expect(unsent).toBeGreaterThan(5_000_000)
  })

  it('waits, in order, while storage refuses', async () => {
    await using server = await smee()
    const disk = { isFull: true }
    const append = async (): Promise<void> => {
      if (disk.isFull) throw new RelayError('storage', 'The disk is full')
    }
    await using rig = await working(server.channel, { append, limits: { waiting: 500_000 } })
    server.write(several(3))
    expect(await rig.says('waits')).toBe(
      'the tunnel waits until storage works again: Delivery could not be stored',
    )
    // What has no signature takes no place among those that wait, so that the stream is read on.
    for (let sent = 0; sent < 300; sent++) server.write(unsigned.repeat(100))
    await expect.poll(() => server.unsent()).toBe(0)
    server.write(several(300, 3))
    disk.isFull = false
    await rig.has(300)
    expect(rig.numbers()).toEqual(numbers(300))
    expect(rig.logged.filter((line) => line.includes('storage'))).toHaveLength(1)
  })
})

describe('a gosmee server', () => {
  it.each([
    ['without Redis drops what relay does not read, and relay stores the rest, in order', undefined, true],
    ['with Redis drops nothing', { stream: 1000 }, false],
  ])('%s', async (_, options, drops) => {
    await using server = await gosmee(options)
    const disk = new AbortController()
    const append = async (): Promise<void> => {
      if (!disk.signal.aborted) await new Promise((resolve) => disk.signal.addEventListener('abort', resolve))
    }
    await using rig = await working(server.channel, { append, limits: { waiting: 500_000 } })
    const bodyOf = (n: number): string => JSON.stringify({ n, text: 'x'.repeat(100_000) })
    const send = (n: number) => post(server.channel, githubDelivery({ body: bodyOf(n) }))
    for (const n of numbers(300)) await send(n)
    disk.abort()
    await expect.poll(() => server.unsent()).toBe(0)
    await send(300)
    await expect.poll(() => JSON.parse(Buffer.from(rig.stored.at(-1)?.body ?? []).toString()).n).toBe(300)
    const stored = rig.numbers()
    const missing = numbers(301).filter((n) => !stored.includes(n))
    expect(stored).toEqual(numbers(301).filter((n) => !missing.includes(n)))
    expect([missing.length > 0, (missing[0] ?? 101) > 100, rig.logged]).toEqual([drops, true, []])
  })
})

describe('a connection that ends', () => {
  const ends: Record<string, (server: TunnelServer) => unknown> = {
    'the server closed the connection': (server) => server.hangUp(),
    'the connection was interrupted': (server) => server.down(),
  }

  it.each(Object.entries(ends))('is replaced: %s', async (why, interrupt) => {
    await using server = await smee()
    await using rig = await working(server.channel, { limits: { linger: 50 } })
    const seen = rig.statuses.length
    await interrupt(server)
    expect((await rig.status({ state: 'waiting', attempt: 1 }, seen)).why).toBe(why)
    if (why.endsWith('interrupted')) await server.up()
    await rig.status({ state: 'connected', attempt: 0, retryAt: null, why: null, roundTrip: 'ok' }, seen)
    await post(server.channel, githubDelivery())
    await rig.has(1)
  })
})

/** A tunnel with two connections: this machine slept, and the first is still open. */
async function afterSleep(limits: TunnelOptions['limits']) {
  const server = await smee()
  server.refusePosts(500)
  let slept = 0
  const rig = await tunnel(server.channel, { clock: () => Date.now() + slept, limits: { ...limits } })
  const old = await server.stream(0)
  await rig.status({ state: 'connected' })
  const seen = rig.statuses.length
  slept = 60_000
  const next = await server.stream(1)
  await rig.status({ state: 'connected' }, seen)
  return {
    rig,
    old,
    next,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe('after waking up', () => {
  const [A = '', B = '', C = '', D = ''] = [1, 2, 3, 4].map((n) => numbered(n))

  it.each([
    ['smee', ''],
    ['gosmee', 'data: {"message":"connected"}\n\ndata: {"message":"ready"}\n\n'],
  ])('reads the old connection first, and what comes on both counts once: %s', async (_, greeting) => {
    await using both = await afterSleep({ linger: 300 })
    both.next.write(greeting + C + D)
    both.old.write(A + B + C + D)
    await both.old.closed
    both.next.write(numbered(5))
    await both.rig.has(5)
    expect(both.rig.numbers()).toEqual([1, 2, 3, 4, 5])
  })

  it('reads the old connection to its end', async () => {
    await using both = await afterSleep({ linger: 60_000 })
    both.next.write(`id: 9\n${D}`)
    both.old.write(A + B)
    await both.rig.has(2)
    // Longer than a tick, after which it would be left if it were not read to its end.
    await new Promise((resolve) => setTimeout(resolve, 30))
    both.old.write(`id: 7\n${C}id: 8\n${D}`)
    both.old.end()
    both.next.write(numbered(5))
    await both.rig.has(5)
    expect(both.rig.numbers()).toEqual([1, 2, 3, 4, 5])
  })

  it('gives the old connection up after half a minute, although the server still sends on both', async () => {
    await using both = await afterSleep({ linger: 60_000, replaced: 100 })
    both.next.write(A)
    await both.old.closed
    await both.rig.has(1)
    expect(both.rig.numbers()).toEqual([1])
  })
})

it('a network that stalls without loss delivers everything once it continues: in order, and once', async () => {
  await using server = await smee({ pingEvery: 10 })
  await using wire = await stalling(Number(new URL(server.url).port))
  const limits = { silence: 300, opening: 100, linger: 500 }
  const channel = `http://127.0.0.1:${wire.port}${new URL(server.channel).pathname}`
  await using rig = await working(channel, { limits })
  const seen = rig.statuses.length
  let sent = 0
  const send = async (): Promise<void> => {
    for (let i = 0; i < 10; i++)
      await post(server.channel, githubDelivery({ body: JSON.stringify({ n: sent++ }) }))
  }
  wire.stall()
  await send()
  await rig.status({ state: 'waiting', why: 'no traffic for 0.3 s' }, seen)
  await send()
  // It also tries in vain to connect again.
  await rig.status({ state: 'waiting', attempt: 2 }, seen)
  await send()
  wire.resume()
  await send()
  await rig.has(sent)
  await rig.status({ state: 'connected', roundTrip: 'ok' }, seen)
  await send()
  await rig.has(sent)
  expect(rig.numbers()).toEqual(numbers(sent))
})

describe('the message to itself', () => {
  it('is no delivery, also if others send it again, and that of another relay is refused', async () => {
    await using server = await smee()
    const sent: [string, Record<string, string>][] = []
    const recording: SendOnce = (url, request) => {
      if (request.method === 'POST')
        sent.push([Buffer.from(request.body ?? '').toString(), { ...request.headers }])
      return sendOnce(url, request)
    }
    await using rig = await working(server.channel, { sendOnce: recording })
    expect([rig.stored, rig.logged, sent.length]).toEqual([[], [], 1])
    const [[body, headers] = ['', {}]] = sent
    await post(server.channel, { headers: Object.entries(headers), body: Buffer.from(body) })
    const others = { ...headers, 'x-hub-signature-256': sign('another', body) }
    await post(server.channel, { headers: Object.entries(others), body: Buffer.from(body) })
    expect(await rig.says('refused')).toMatch(
      /^a tunnel message was refused: another relay on this channel sent it to itself \(unproved: event ping, /,
    )
    expect([rig.stored, rig.logged.length]).toEqual([[], 1])
  })
})

describe('a gosmee server with Redis', () => {
  /** Sends deliveries with these numbers, one after the other. */
  const send = async (server: TunnelServer, ...numbers: readonly number[]): Promise<void> => {
    for (const n of numbers) await post(server.channel, githubDelivery({ body: `{"n": ${n}}` }))
  }

  it('is asked again without an id that it does not accept', async () => {
    await using server = await gosmee({ stream: 1000 })
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    await store.put('tunnel-position', { v: 1, url: server.channel, id: 'unknown' })
    await using rig = await working(server.channel, { store })
    expect(rig.statuses.map(({ state }) => state)).not.toContain('waiting')
  })

  it('says when it no longer has all messages', async () => {
    await using server = await gosmee({ stream: 2 })
    const { store } = await openDatabase({ kind: 'memory', folder: '' })
    {
      await using rig = await working(server.channel, { store })
      await send(server, 1)
      await rig.has(1)
    }
    await send(server, 2, 3, 4, 5)
    await using rig = await tunnel(server.channel, { store })
    expect(await rig.says('did not store all')).toContain('redeliver the missing ones at the code host')
    await rig.has(2)
  })
})

it('a channel is made at a gosmee server, which may not know the name that it has outside', async () => {
  await using server = await gosmee()
  await using rig = await tunnel(server.url)
  const { url } = await rig.status({ state: 'connected', roundTrip: 'ok' })
  expect(url).toMatch(new RegExp(`^${server.url}/[\\w-]+$`))
  await post(String(url), githubDelivery())
  await rig.has(1)
})

it.each([
  [{ status: 503 }, 'it answers 503'],
  [{ status: 200 }, 'it answers 200'],
  [
    { status: 307, headers: { location: 'https://evil.example/x' } },
    'it is not a smee server: it redirects to https://evil.example/x, which is not followed. If it has moved there, set --tunnel to that',
  ],
  [{ status: 307, headers: { location: 'mailto:a@b.example' } }, 'it is not a smee server'],
  ['reset', 'connection closed before an answer'],
] as const)('a channel is not made if the server answers %j', async (answer, reason) => {
  await using server = await receiver(answer)
  await using rig = await tunnel(server.url)
  const why = `${server.url} did not create a channel: ${reason}`
  expect(await rig.status({ state: 'waiting' })).toMatchObject({ why, url: null })
})

describe('a server of a stranger', () => {
  const MANY = 262_144
  const stream: Readonly<Record<string, string>> = {
    'lines with data': 'data: a\n',
    'lines without data': 'data\n',
    'lines that end with a return': 'data: a\r',
    'lines of both ends': 'data: a\r\ndata: b\n',
    'blank lines': '\n',
    comments: ':\n',
    ids: 'id: 1\n',
  }

  // More than a megabyte of each. A delivery that follows shows that relay has read all of it.
  it.each(Object.entries(stream))('costs only its message, whatever its lines are: %s', async (_, line) => {
    await using server = await smee()
    await using rig = await working(server.channel, { limits: { message: 100_000 } })
    const seen = rig.statuses.length
    for (let at = 0; at < 16; at++) server.write(line.repeat(MANY / 16))
    server.write(`\n\n${numbered(2)}${numbered(3)}`)
    await rig.has(2)
    expect(rig.numbers()).toEqual([2, 3])
    expect(rig.statuses.length).toBe(seen)
  })

  it('is not kept by its lines: a message of a thousand is refused, whatever its size', async () => {
    await using server = await smee()
    await using rig = await working(server.channel, { limits: { message: 100_000 } })
    const spread = (lines: number): string =>
      numbered(1).replace('data: {', `data: {\n${'data:\n'.repeat(lines)}data: `)
    server.write(spread(10) + spread(1000) + numbered(2))
    await rig.has(2)
    expect(rig.numbers()).toEqual([1, 2])
    expect(await rig.says('refused')).toContain('the message is not JSON, or is far over --max-body')
  })

  it('has its line ends read in any parts', async () => {
    await using server = await smee()
    await using rig = await working(server.channel)
    for (const end of ['\n', '\r', '\r\n'])
      for (const part of numbered(1)
        .replaceAll('\n', end)
        .split(/(?=[\r\n])|(?<=[\r\n])/)) {
        server.write(part)
        await new Promise((resolve) => setImmediate(resolve))
      }
    await rig.has(3)
    expect(rig.numbers()).toEqual([1, 1, 1])
  })
})
