import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LiveEvent } from '../../src/inspector/api.js'
import { MAX_LINES } from '../../src/inspector/activity.js'
import { MAX_CLIENTS } from '../../src/inspector/live.js'
import { delivery } from '../journal/rig.js'
import { openRig, type Rig } from './rig.js'

let rig: Rig
beforeEach(async () => {
  rig = await openRig()
})
afterEach(() => rig[Symbol.asyncDispose]())

interface Received {
  readonly id: string | undefined
  readonly event: LiveEvent
}

/** The events of a stream, until it is disposed of. */
async function follow(lastEventId?: string, search = ''): Promise<AsyncIterator<Received> & Disposable> {
  const end = new AbortController()
  const headers = { Cookie: rig.cookie, ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }) }
  const { body } = await fetch(`${rig.url}/inspect/api/live${search}`, { headers, signal: end.signal })
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
  it('has a refused request, and what a break has left out', async () => {
    using first = await follow()
    await next(first, 'state')
    await rig.deliver({ id: 'one' })
    const { id, event } = await next(first, 'deliveries')
    expect([event.deliveries.map(({ n }) => n), event.skipped]).toEqual([[1], 0])
    await expect(rig.deliver({ id: 'bad', secret: 'wrong' })).rejects.toThrow('401')
    expect((await next(first, 'refused')).event.counts).toEqual({ invalid_signature: 1 })
    first[Symbol.dispose]()

    await rig.deliver({ id: 'two' })
    await rig.deliver({ id: 'three' })
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

  it('only counts too many changes at once', async () => {
    using stream = await follow()
    await next(stream, 'state')
    const { journal } = rig.serving.relay
    const count = MAX_LINES + 50
    await Promise.all(Array.from({ length: count }, (_, i) => journal.append(delivery(`${i}`))))
    for (let seen = 0; seen < count;) {
      const { event } = await next(stream, 'deliveries')
      const lines = event.deliveries.length
      expect(event.skipped === 0 ? lines <= MAX_LINES : lines === 0 && event.skipped > MAX_LINES).toBe(true)
      seen += lines + event.skipped
      expect(seen).toBeLessThanOrEqual(count)
    }
    await rig.deliver({ id: 'another' })
    const { event } = await next(stream, 'deliveries')
    expect([event.deliveries.map(({ n }) => n), event.skipped]).toEqual([[count + 1], 0])
  })

  it('says which entries retention has removed', async () => {
    await rig.deliver({ id: 'old' })
    await rig.deliver({ id: 'new' })
    using stream = await follow()
    await next(stream, 'state')
    await rig.serving.relay.journal.sweep({ keep: 0, keepMax: 0, now: Date.now() + 1000 })
    expect((await next(stream, 'removed')).event).toEqual({ type: 'removed', below: 2 })
  })

  it('is one of few', async () => {
    const streams = await Promise.all(Array.from({ length: MAX_CLIENTS }, () => follow()))
    const refused = await rig.get('live')
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
      503,
      '10',
      { error: '20 inspectors are open. Close one' },
    ])
    for (const stream of streams) stream[Symbol.dispose]()
    await expect.poll(async () => (await probe()).status).toBe(200)
  })
})

async function probe(): Promise<Response> {
  const response = await rig.get('live')
  await response.body?.cancel()
  return response
}

describe('a page that reads slowly', () => {
  it('holds nothing up, misses changes, and gets to know that it has', async () => {
    const { journal } = rig.serving.relay
    const outgoing = httpRequest(`${rig.url}/inspect/api/live`, { headers: { Cookie: rig.cookie } }).end()
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    incoming?.pause()
    using quick = await follow()
    await next(quick, 'state')
    // In rounds of 2 MB that the quick page has whole: far more than the stream and the sockets hold.
    const repo = 'x'.repeat(20_000)
    for (let round = 1; round <= 12; round++) {
      const batch = Array.from({ length: 100 }, (_, i) => journal.append(delivery(`${round} ${i}`, { repo })))
      await Promise.all(batch)
      for (let last = 0; last < round * 100;)
        last = (await next(quick, 'deliveries')).event.deliveries.at(-1)?.n ?? last
    }
    let text = ''
    incoming
      ?.setEncoding('utf8')
      .on('data', (chunk: string) => (text = text.slice(-200) + chunk.slice(-2000)))
      .resume()
    await expect.poll(() => /"deliveries":\[\],"skipped":[1-9]/.test(text), { timeout: 10_000 }).toBe(true)
    outgoing.destroy()
  })

  it('does not hold up the end of relay', async () => {
    const { journal } = rig.serving.relay
    const outgoing = httpRequest(`${rig.url}/inspect/api/live`, { headers: { Cookie: rig.cookie } }).end()
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
    incoming?.pause().on('error', () => {})
    using quick = await follow()
    await next(quick, 'state')
    for (let n = 1; n <= 10; n++) {
      await journal.append(delivery(`${n}`, { repo: 'x'.repeat(2_000_000) }))
      await next(quick, 'deliveries')
    }
    const began = performance.now()
    await rig.serving[Symbol.asyncDispose]()
    expect(performance.now() - began).toBeLessThan(3000)
    outgoing.destroy()
  })
})
