import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type Inspector, openInspector } from '../kit/inspector.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { fresh } from './fixture.js'

/** What a stream says. */
interface LiveEvent {
  readonly type: 'lines' | 'stale' | 'refused' | 'removed' | 'state'
  /** Of `lines`. */
  readonly lines?: readonly { readonly n: number }[]
}

const here = fresh(() => place({ host: 'none' }))
const relay = fresh(() => here.serve())
const inspector = fresh(() => openInspector(here, relay))

type Stream = AsyncIterator<LiveEvent> & Disposable

/** The events of a stream, until it is disposed of. */
async function follow({ url, cookie }: Inspector = inspector): Promise<Stream> {
  const end = new AbortController()
  const { body } = await fetch(`${url}/inspect/api/live`, { headers: { Cookie: cookie }, signal: end.signal })
  if (!body) throw new Error('there is no stream')
  const events = read(body.pipeThrough(new TextDecoderStream()))
  return { next: () => events.next(), [Symbol.dispose]: () => end.abort() }
}

async function* read(text: ReadableStream<string>): AsyncGenerator<LiveEvent> {
  let rest = ''
  for await (const chunk of text) {
    rest += chunk
    for (let at = rest.indexOf('\n\n'); at !== -1; at = rest.indexOf('\n\n')) {
      const line = rest.slice(0, at)
      rest = rest.slice(at + 2)
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length))
    }
  }
}

/** The next event of this type. */
async function next(events: AsyncIterator<LiveEvent>, type: LiveEvent['type']): Promise<LiveEvent> {
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error('the stream has ended')
    if (value.type === type) return value
  }
}

const numbersOf = ({ lines = [] }: LiveEvent): number[] => lines.map(({ n }) => n)

describe('a stream of changes', () => {
  it('begins with the count of refused requests, then has new deliveries, and ends when relay stops', async () => {
    const stream = await inspector.get('live')
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    if (!reader) throw new Error('there is no stream')
    expect(await reader.read()).toEqual({ done: false, value: 'data: {"type":"refused","count":0}\n\n' })
    await relay.deliver({ id: 'new' })
    let text = ''
    while (!text.includes('\n\n')) text += (await reader.read()).value
    expect(text).toMatch(/^data: \{"type":"lines","lines":\[\{"n":1,.*\n\n$/)
    const began = performance.now()
    await relay.stop()
    expect(await reader.read()).toEqual({ done: true, value: undefined })
    expect(performance.now() - began).toBeLessThan(2000)
  })

  it('has the same for every page: lines, oldest first, and refused requests', async () => {
    using first = await follow()
    using second = await follow()
    const streams = [first, second]
    for (const stream of streams) await next(stream, 'refused')
    await Promise.all([relay.deliver({ id: 'one' }), relay.deliver({ id: 'two' })])
    for (const stream of streams) expect(numbersOf(await next(stream, 'lines'))).toEqual([1, 2])
    expect((await relay.deliver({ id: 'bad', secret: 'wrong' })).status).toBe(401)
    for (const stream of streams) expect(await next(stream, 'refused')).toEqual({ type: 'refused', count: 1 })
    // What a page has missed it reads itself.
    using third = await follow()
    expect(await third.next()).toEqual({ done: false, value: { type: 'refused', count: 1 } })
    await relay.deliver({ id: 'three' })
    expect(numbersOf(await next(third, 'lines'))).toEqual([3])
  })

  it('has each change once, and asks to read again when they are too many at once', async () => {
    using stream = await follow()
    await next(stream, 'refused')
    const count = 250
    const sent = Promise.all(Array.from({ length: count }, () => relay.deliver()))
    const seen: number[] = []
    let isStale = false
    while (!isStale && seen.length < count) {
      const { value } = await stream.next()
      if (value.type === 'stale') isStale = true
      else if (value.type === 'lines') seen.push(...numbersOf(value))
    }
    await sent
    expect([...new Set(seen)]).toEqual(seen)
    // A burst is over when the next delivery comes alone.
    await relay.deliver({ id: 'last' })
    for (let isLast = false; !isLast;) {
      const numbers = numbersOf(await next(stream, 'lines'))
      expect(numbers.length).toBeLessThanOrEqual(200)
      isLast = numbers.includes(count + 1)
    }
  })

  it('has a change of a target as a change of the state', async () => {
    await using own = await place({ host: 'none' })
    const serving = await own.serve('--forward', `http://127.0.0.1:${await closedPort()}`)
    using stream = await follow(await openInspector(own, serving))
    await next(stream, 'refused')
    await serving.deliver()
    expect(await next(stream, 'state')).toEqual({ type: 'state' })
  })

  it('says which entries retention has removed', async () => {
    const time = clock(Date.now())
    await using own = await place({ host: 'none' })
    const seams = { clock: time.now, limits: { sweep: 50 } }
    const serving = await own.serveWith({ seams }, '--keep', '10s')
    using stream = await follow(await openInspector(own, serving))
    await next(stream, 'refused')
    await serving.deliver({ id: 'old' })
    time.advance(30_000)
    await serving.deliver({ id: 'new' })
    expect(await next(stream, 'removed')).toEqual({ type: 'removed', below: 2 })
  })

  it('ends when its page closes its half of the connection', async () => {
    const { host, hostname, port } = new URL(inspector.url)
    const socket = connect(Number(port), hostname)
    socket.write(`GET /inspect/api/live HTTP/1.1\r\nHost: ${host}\r\nCookie: ${inspector.cookie}\r\n\r\n`)
    await once(socket, 'data')
    const closed = once(socket, 'close')
    socket.end()
    expect(await closed).toEqual([false])
  })

  it('is one of few', async () => {
    const streams = await Promise.all(Array.from({ length: 20 }, () => follow()))
    const refused = await inspector.get('live')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10'])
    expect(await refused.json()).toEqual({ error: '20 inspectors are open. Close one' })
    for (const stream of streams) stream[Symbol.dispose]()
    const probe = async (): Promise<number> => {
      const response = await inspector.get('live')
      await response.body?.cancel()
      return response.status
    }
    await expect.poll(probe).toBe(200)
  })
})

describeWith('postgres', 'a relay of several', () => {
  it('asks its pages to read again what another one has changed', async () => {
    await using own = await place({ host: 'none', store: 'postgres' })
    const other = await own.serve()
    const serving = await own.serve()
    using stream = await follow(await openInspector(own, serving))
    await next(stream, 'refused')
    await other.deliver()
    expect(await next(stream, 'stale')).toEqual({ type: 'stale' })
  })
})

describe('a page that reads slowly', () => {
  async function openSlowly({ url, cookie }: Inspector) {
    const outgoing = httpRequest(`${url}/inspect/api/live`, { headers: { Cookie: cookie } }).end()
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    return { outgoing, incoming: incoming?.pause().on('error', () => {}) }
  }

  it('holds nothing up, is closed, so that it connects again, and does not hold up the end', async () => {
    await using own = await place({ host: 'none' })
    const port = await closedPort()
    // Long names of targets make lines of 200 KB.
    const [one, other] = ['a', 'b'].map((letter) => `http://127.0.0.1:${port}/${letter.repeat(100_000)}`)
    const serving = await own.serve('--forward', one ?? '', '--forward', other ?? '')
    const opened = await openInspector(own, serving)
    const slow = await openSlowly(opened)
    const cut = once(slow.outgoing, 'close')
    using quick = await follow(opened)
    await next(quick, 'refused')
    // In rounds of 2 MB that the quick page has whole: far more than the stream and the sockets hold.
    for (let round = 1; round <= 8; round++) {
      await Promise.all(Array.from({ length: 10 }, () => serving.deliver()))
      for (let last = 0; last < round * 10;) last = numbersOf(await next(quick, 'lines')).at(-1) ?? last
    }
    slow.incoming?.resume()
    await cut
    const stuck = await openSlowly(opened)
    const began = performance.now()
    await serving.stop()
    expect(performance.now() - began).toBeLessThan(3000)
    for (const { outgoing } of [slow, stuck]) outgoing.destroy()
  })
})
