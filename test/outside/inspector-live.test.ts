import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { clock } from '../kit/clock.js'
import { type Inspector, openInspector } from '../kit/inspector.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'

/** What a stream says. */
type LiveEvent =
  | {
      readonly type: 'deliveries'
      readonly deliveries: readonly { readonly n: number }[]
      readonly skipped: number
    }
  | { readonly type: 'refused'; readonly counts: Readonly<Record<string, number>> }
  | { readonly type: 'removed'; readonly below: number }
  | { readonly type: 'state' }

interface Received {
  readonly id: string | undefined
  readonly event: LiveEvent
}

let here: Place
let relay: Serving
let inspector: Inspector
beforeEach(async () => {
  here = await place({ host: 'none' })
  relay = await here.serve()
  inspector = await openInspector(here, relay)
})
afterEach(() => here[Symbol.asyncDispose]())

/** The events of a stream, until it is disposed of. */
async function follow(
  lastEventId?: string,
  search = '',
  { url, cookie }: Inspector = inspector,
): Promise<AsyncIterator<Received> & Disposable> {
  const end = new AbortController()
  const headers = { Cookie: cookie, ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }) }
  const { body } = await fetch(`${url}/inspect/api/live${search}`, { headers, signal: end.signal })
  if (!body) throw new Error('there is no stream')
  const events = read(body.pipeThrough(new TextDecoderStream()))
  return { next: () => events.next(), [Symbol.dispose]: () => end.abort() }
}

async function* read(text: ReadableStream<string>): AsyncGenerator<Received> {
  let rest = ''
  for await (const chunk of text) {
    rest += chunk
    for (let at = rest.indexOf('\n\n'); at !== -1; at = rest.indexOf('\n\n')) {
      const lines = new Map(
        rest
          .slice(0, at)
          .split('\n')
          .map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)]),
      )
      rest = rest.slice(at + 2)
      const data = lines.get('data')
      if (data !== undefined) yield { id: lines.get('id'), event: JSON.parse(data) }
    }
  }
}

/** The next event of this type. */
async function next<Type extends LiveEvent['type']>(
  events: AsyncIterator<Received>,
  type: Type,
): Promise<{ readonly id: string | undefined; readonly event: Extract<LiveEvent, { type: Type }> }> {
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error('the stream has ended')
    const { id, event } = value
    if (isOf(event, type)) return { id, event }
  }
}

function isOf<Type extends LiveEvent['type']>(
  event: LiveEvent,
  type: Type,
): event is Extract<LiveEvent, { type: Type }> {
  return event.type === type
}

describe('a stream of changes', () => {
  it('begins with the state, then has new deliveries, and ends when relay stops', async () => {
    const stream = await inspector.get('live')
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    if (!reader) throw new Error('there is no stream')
    const first = await reader.read()
    expect(first.value).toMatch(/^event: state\ndata: \{"type":"state",/)
    await relay.deliver({ id: 'new' })
    let text = ''
    while (!text.includes('event: deliveries')) text += (await reader.read()).value
    expect(text).toMatch(
      /(?:^|\n\n)id: [\w-]+\.1\nevent: deliveries\ndata: \{"type":"deliveries","deliveries":\[\{"n":1,/,
    )
    const began = performance.now()
    await relay.stop()
    expect(await reader.read()).toEqual({ done: true, value: undefined })
    expect(performance.now() - began).toBeLessThan(2000)
  })

  it('has a refused request, and what a break has left out', async () => {
    using first = await follow()
    await next(first, 'state')
    await relay.deliver({ id: 'one' })
    const { id, event } = await next(first, 'deliveries')
    expect([event.deliveries.map(({ n }) => n), event.skipped]).toEqual([[1], 0])
    expect((await relay.deliver({ id: 'bad', secret: 'wrong' })).status).toBe(401)
    expect((await next(first, 'refused')).event.counts).toEqual({ invalid_signature: 1 })
    first[Symbol.dispose]()

    await relay.deliver({ id: 'two' })
    await relay.deliver({ id: 'three' })
    using resumed = await follow(id)
    // A page that was hidden opens another stream, for which it cannot set the header.
    using reopened = await follow(undefined, `?after=${id}`)
    for (const stream of [resumed, reopened]) {
      expect((await next(stream, 'refused')).event.counts).toEqual({ invalid_signature: 1 })
      const missed = await next(stream, 'deliveries')
      expect([missed.event.deliveries.map(({ n }) => n), missed.event.skipped]).toEqual([[2, 3], 0])
    }
  })

  it('asks a page that comes from another instance to read the list again', async () => {
    using stream = await follow('another.7')
    expect((await next(stream, 'deliveries')).event).toEqual({
      type: 'deliveries',
      deliveries: [],
      skipped: 1,
    })
  })

  it('has each change once, and only counts them when they are too many at once', async () => {
    using stream = await follow()
    await next(stream, 'state')
    await relay.deliver()
    const { id } = await next(stream, 'deliveries')
    const count = 210
    const sent = Promise.all(Array.from({ length: count }, () => relay.deliver()))
    for (let seen = 0; seen < count;) {
      const { event } = await next(stream, 'deliveries')
      const lines = event.deliveries.length
      expect(event.skipped === 0 ? lines <= 200 : lines === 0 && event.skipped > 200).toBe(true)
      seen += lines + event.skipped
      expect(seen).toBeLessThanOrEqual(count)
    }
    await sent
    using resumed = await follow(id)
    expect((await next(resumed, 'deliveries')).event).toEqual({
      type: 'deliveries',
      deliveries: [],
      skipped: count,
    })
    await relay.deliver({ id: 'another' })
    const { event } = await next(stream, 'deliveries')
    expect([event.deliveries.map(({ n }) => n), event.skipped]).toEqual([[count + 2], 0])
  })

  it('says which entries retention has removed', async () => {
    const time = clock(Date.now())
    await using own = await place({ host: 'none' })
    const seams = { clock: time.now, limits: { sweep: 50 } }
    const serving = await own.serveWith({ seams }, '--keep', '10s')
    using stream = await follow(undefined, '', await openInspector(own, serving))
    await next(stream, 'state')
    await serving.deliver({ id: 'old' })
    time.advance(30_000)
    await serving.deliver({ id: 'new' })
    expect((await next(stream, 'removed')).event).toEqual({ type: 'removed', below: 2 })
  })

  it('is one of few', async () => {
    const streams = await Promise.all(Array.from({ length: 20 }, () => follow()))
    const refused = await inspector.get('live')
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
      503,
      '10',
      { error: '20 inspectors are open. Close one' },
    ])
    for (const stream of streams) stream[Symbol.dispose]()
    const probe = async (): Promise<number> => {
      const response = await inspector.get('live')
      await response.body?.cancel()
      return response.status
    }
    await expect.poll(probe).toBe(200)
  })
})

describe('a page that reads slowly', () => {
  async function openSlowly({ url, cookie }: Inspector) {
    const outgoing = httpRequest(`${url}/inspect/api/live`, { headers: { Cookie: cookie } }).end()
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    return { outgoing, incoming: incoming?.pause().on('error', () => {}) }
  }

  it(
    'holds nothing up, misses changes, gets to know that it has, and does not hold up the end',
    { timeout: 60_000 },
    async () => {
      await using own = await place({ host: 'none' })
      const port = await closedPort()
      // Long names of targets make lines of 200 KB.
      const [one, other] = ['a', 'b'].map((letter) => `http://127.0.0.1:${port}/${letter.repeat(100_000)}`)
      const serving = await own.serve('--forward', one ?? '', '--forward', other ?? '')
      const opened = await openInspector(own, serving)
      const slow = await openSlowly(opened)
      const stuck = await openSlowly(opened)
      using quick = await follow(undefined, '', opened)
      await next(quick, 'state')
      // In rounds of 2 MB that the quick page has whole: far more than the stream and the sockets hold.
      for (let round = 1; round <= 8; round++) {
        await Promise.all(Array.from({ length: 10 }, () => serving.deliver()))
        for (let last = 0; last < round * 10;)
          last = (await next(quick, 'deliveries')).event.deliveries.at(-1)?.n ?? last
      }
      let text = ''
      slow.incoming
        ?.setEncoding('utf8')
        .on('data', (chunk: string) => (text = text.slice(-200) + chunk.slice(-2000)))
        .resume()
      await expect.poll(() => /"deliveries":\[\],"skipped":[1-9]/.test(text)).toBe(true)
      const began = performance.now()
      await serving.stop()
      expect(performance.now() - began).toBeLessThan(3000)
      for (const { outgoing } of [slow, stuck]) outgoing.destroy()
    },
  )
})
