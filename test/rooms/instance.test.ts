import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERROR_KINDS, RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { wakeups } from '../../src/cli/follow.js'
import { callInstance } from '../../src/cli/instance-client.js'
import { type Listener, listen } from '../../src/http/listen.js'
import { openChanges } from '../../src/instance/client.js'
import {
  answerText,
  createInstanceRecord,
  type InstanceRecord,
  PROOF_HEADER,
  prove,
} from '../../src/instance/protocol.js'
import { publishInstance } from '../../src/instance/running.js'
import { ChangeStreams } from '../../src/server/changes.js'
import { instanceRoutes } from '../../src/server/instance.js'
import { emptyFolder } from '../kit/folder.js'
import { receiver } from '../kit/receiver.js'

type Parts = Parameters<typeof instanceRoutes>[0]

/** An instance that answers POST /instance and nothing else. Its call `routes` fails with what `failure` is. */
async function instance() {
  const stop = new AbortController()
  const changes = new ChangeStreams(stop.signal)
  let failure: unknown
  let record: InstanceRecord | undefined
  const parts: object = {
    refusals: { list: { list: () => [], counts: () => ({}) } },
    instance: {
      prove: (text: string) => (record ? prove(record, text) : ''),
      status: () => ({ startedAt: '' }),
      changes,
      routes: async () => {
        throw failure
      },
    },
    log: silentLog,
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the calls that are made here need no other part
  const routes = instanceRoutes(parts as Parts)
  const listener: Listener = await listen(routes.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
  record = createInstanceRecord({ pid: process.pid, url: listener.url, profile: 'default' })
  return {
    record,
    changes,
    stop: () => stop.abort(),
    fails: (error: unknown) => (failure = error),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await listener.close()
    },
  }
}

let running: Awaited<ReturnType<typeof instance>>
beforeAll(async () => {
  running = await instance()
})
afterAll(() => running[Symbol.asyncDispose]())

describe('a failure of the instance', () => {
  it.each(ERROR_KINDS.flatMap((kind) => [undefined, 7].map((retryAfter) => [kind, retryAfter] as const)))(
    'of the kind %s, to be tried again after %s s, is the same for its caller',
    async (kind, retryAfter) => {
      const error = new RelayError(kind, `failed as ${kind}`, { retryAfter })
      running.fails(error)
      const given: unknown = await callInstance(running.record, 'routes', {}).catch(
        (thrown: unknown) => thrown,
      )
      expect(given).toBeInstanceOf(RelayError)
      const message = error.clientMessage
      expect(given).toMatchObject({
        kind,
        message,
        retryAfter,
        exitCode: error.exitCode,
        status: error.status,
      })
    },
  )

  it('that nobody expected has no text', async () => {
    running.fails(new TypeError('canary'))
    const expected = { kind: 'internal', message: 'Internal error' }
    await expect(callInstance(running.record, 'routes', {})).rejects.toMatchObject(expected)
  })
})

describe('an answer', () => {
  it('that the instance gave to another call is not believed', async () => {
    let given: { text: string; proof: string } | undefined
    await using between = await receiver(async ({ body, headers }) => {
      const sent = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
      const proof = sent['x-relay-proof'] ?? ''
      const passed = await fetch(new URL('/instance', running.record.url), {
        method: 'POST',
        headers: { 'X-Relay-Proof': proof },
        body,
      })
      given ??= { text: await passed.text(), proof: passed.headers.get('x-relay-proof') ?? '' }
      return { headers: { 'X-Relay-Proof': given.proof }, body: given.text }
    })
    const record = { ...running.record, url: between.url }
    expect(await callInstance(record, 'refused', {})).toEqual({ refused: [], counts: {} })
    await expect(callInstance(record, 'refused', {})).rejects.toMatchObject({
      kind: 'unavailable',
      message: `${between.url} gave an answer that the instance has not proved`,
    })
  })

  it('to a call that this instance does not know says to restart it', async () => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as a newer command calls it
    const call = 'newer' as 'routes'
    const message = 'the running relay has no call "newer": it is of another version. Restart it'
    await expect(callInstance(running.record, call, {})).rejects.toMatchObject({
      kind: 'unavailable',
      message,
    })
  })
})

describe('the stream of changes', () => {
  const LIMIT = { limit: 5000 }

  it('has each topic once, however many changes its reader did not read', async () => {
    using stream = await openChanges(running.record, LIMIT)
    const lines = stream.lines[Symbol.asyncIterator]()
    expect((await lines.next()).value).toEqual([])
    running.changes.changed('journal')
    expect((await lines.next()).value).toEqual(['journal'])
    // Within the pause after that line.
    for (let i = 0; i < 100_000; i += 1) running.changes.changed(i % 2 === 0 ? 'journal' : 'status')
    expect((await lines.next()).value?.toSorted()).toEqual(['journal', 'status'])
  })

  it('is opened only for a proof, and believed only with one', async () => {
    const other = { ...running.record, key: Buffer.alloc(32).toString('base64url') }
    await expect(openChanges(other, LIMIT)).rejects.toMatchObject({ kind: 'unavailable' })
    await using stranger = await receiver({ body: '{"changed":[]}\n', stalls: true })
    await expect(openChanges({ ...running.record, url: stranger.url }, LIMIT)).rejects.toMatchObject({
      kind: 'unavailable',
    })
  })

  it('ends at once when the instance stops, and when its reader does', async () => {
    const own = await instance()
    using stream = await openChanges(own.record, LIMIT)
    const abort = new AbortController()
    using cancelled = await openChanges(own.record, { ...LIMIT, signal: abort.signal })
    const read = async (lines: AsyncIterable<unknown>): Promise<string> => {
      for await (const _ of lines);
      return 'ended'
    }
    const reading = [read(stream.lines), read(cancelled.lines)]
    abort.abort()
    expect(await reading[1]).toBe('ended')
    own.stop()
    expect(await reading[0]).toBe('ended')
    await own[Symbol.asyncDispose]()
  })
})

describe('a command that follows', () => {
  it('looks when something changes and does not poll, then polls once the instance has ended', async () => {
    const own = await instance()
    const home = emptyFolder()
    const published = publishInstance(home, own.record)
    const abort = new AbortController()
    const profile = { values: { home }, name: 'default', unreachable: undefined }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a shell and its settings it needs no more
    const given = [{ signal: abort.signal, out: { log: silentLog } }, profile] as unknown as Parameters<
      typeof wakeups
    >
    let count = 0
    const counted = new EventTarget()
    const following = (async () => {
      for await (const _ of wakeups(...given)) {
        count += 1
        counted.dispatchEvent(new Event('look'))
      }
    })()
    const idle = async (): Promise<number> => {
      await sleep(300)
      const before = count
      // Ten times as long as between two polls, and less than between two heartbeats.
      await sleep(1000)
      return count - before
    }
    expect(await idle()).toBe(0)
    const looked = once(counted, 'look')
    own.changes.changed('journal')
    await looked
    published[Symbol.dispose]()
    await own[Symbol.asyncDispose]()
    for (let i = 0; i < 5; i += 1) await once(counted, 'look')
    const next = await instance()
    using _ = publishInstance(home, next.record)
    await sleep(300)
    expect(await idle()).toBe(0)
    abort.abort()
    await following.catch(() => {})
    await next[Symbol.asyncDispose]()
  })

  it('gives way, and looks no more often than it polls, where the stream of changes ends at once each time', async () => {
    const home = emptyFolder()
    await using web = await receiver(({ headers }) => {
      const [, proof = ''] = headers.find(([name]) => name.toLowerCase() === PROOF_HEADER.toLowerCase()) ?? []
      return { body: '', headers: { [PROOF_HEADER]: prove(record, answerText(proof, 200, '')) } }
    })
    const record = createInstanceRecord({ pid: process.pid, url: web.url, profile: 'default' })
    using _ = publishInstance(home, record)
    const profile = { values: { home }, name: 'default', unreachable: undefined }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a shell and its settings it needs no more
    const given = [
      { signal: new AbortController().signal, out: { log: silentLog } },
      profile,
      { limit: 1000 },
    ] as unknown as Parameters<typeof wakeups>
    for await (const __ of wakeups(...given));
    // One each 100 ms, with what opening takes.
    expect(web.received.length).toBeGreaterThan(2)
    expect(web.received.length).toBeLessThanOrEqual(11)
  })

  it.each([
    ['its time limit', { limit: 250 }, undefined],
    ['Ctrl-C', {}, 'cancelled'],
  ])(
    'ends by %s while the stream of an instance that stands still is being opened',
    async (_name, options, kind) => {
      const home = emptyFolder()
      await using web = await receiver('hang')
      const record = createInstanceRecord({ pid: process.pid, url: web.url, profile: 'default' })
      using _ = publishInstance(home, record)
      const profile = { values: { home }, name: 'default', unreachable: undefined }
      const abort = new AbortController()
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a shell and its settings it needs no more
      const given = [
        { signal: abort.signal, out: { log: silentLog } },
        profile,
        options,
      ] as unknown as Parameters<typeof wakeups>
      let count = 0
      const following = (async () => {
        for await (const __ of wakeups(...given)) count += 1
      })().catch((error: unknown) => error)
      await web.has(1)
      if (kind !== undefined) abort.abort(new RelayError('cancelled', 'Interrupted'))
      expect(await following).toEqual(kind === undefined ? undefined : abort.signal.reason)
      expect(count).toBeLessThan(10)
    },
  )
})
