import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { parseForward } from '../../src/dispatch/route.js'
import type { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { storageError } from '../../src/store/storage-error.js'
import { emptyFolder } from '../helpers/context.js'
import { eventually } from '../helpers/keyring.js'
import { startTarget, valuesOf } from '../helpers/target.js'
import { createRig, type Rig } from './rig.js'
import { waitingOf } from '../helpers/journal.js'

/** SQLITE_CORRUPT of sqlite.org/rescode.html. */
const CORRUPT = 11

const waiting = async (journal: Journal): Promise<string[]> =>
  (await waitingOf(journal)).map(({ n, target, forward }) => `${n} ${target} ${forward.tries}`)

/** Closes, and says how long that took. Milliseconds. */
async function close({ dispatcher }: Rig): Promise<number> {
  const before = performance.now()
  await dispatcher[Symbol.asyncDispose]()
  return performance.now() - before
}

describe('closing', () => {
  it.each(['hang', 'reset', 503] as const)(
    'while a target answers %s leaves the work waiting',
    async (answer) => {
      await using server = await startTarget(() => answer)
      await using rig = await createRig({ forward: [server.url] })
      await rig.receive()
      await rig.receive()
      await server.has(1)
      if (answer !== 'hang') await rig.time.waited()
      expect(await close(rig)).toBeLessThan(1000)
      const target = `*=${server.url}`
      expect(await waiting(rig.journal)).toEqual([`1 ${target} ${answer === 503 ? 1 : 0}`, `2 ${target} 0`])
      const outcome = { hang: 'killed', reset: 'unreachable', 503: 'retry' }[answer]
      expect((await rig.journal.attempts(1)).map((each) => each.outcome)).toEqual([outcome])
      expect([rig.time.waits, await rig.journal.attempts(2)]).toEqual([[], []])
      await rig.receive()
      await rig.dispatcher.start()
      await rig.dispatcher.idle()
      expect(server.received.length).toBe(1)
    },
  )

  it('ends a command that is running, and it is run again after the next start', async () => {
    const file = path.join(emptyFolder(), 'begun')
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const exec = [`if test -e ${file}; then echo again; else echo begun; touch ${file}; sleep 60; fi; :`]
    await using rig = await createRig({ exec, database })
    await rig.receive()
    await eventually(() => existsSync(file) || undefined)
    expect(await close(rig)).toBeLessThan(2000)
    await using next = await createRig({ exec, database })
    await next.dispatcher.idle()
    const attempts = await next.journal.attempts(1)
    expect(attempts.map(({ outcome, answer }) => [outcome, Buffer.from(answer).toString()])).toEqual([
      ['killed', 'begun\n'],
      ['succeeded', 'again\n'],
    ])
    expect(await waiting(next.journal)).toEqual([])
  })

  it('does not wait for a disk that is full', async () => {
    await using server = await startTarget()
    const record = (): Promise<void> => Promise.reject(new RelayError('storage', 'no room'))
    await using rig = await createRig({
      forward: [server.url],
      journal: (journal) => ({ ...journal, record }),
    })
    await rig.receive()
    await rig.time.waited()
    expect(await close(rig)).toBeLessThan(1000)
    expect(await waiting(rig.journal)).toEqual([`1 *=${server.url} 0`])
  })

  it('resolves those who wait for idle, also when called twice', async () => {
    await using server = await startTarget(() => 'hang')
    await using rig = await createRig({ forward: [server.url] })
    await rig.receive()
    const idle = rig.dispatcher.idle()
    await Promise.all([close(rig), close(rig)])
    await idle
    expect(rig.dispatcher.status()).toEqual([
      { id: `*=${server.url}`, label: server.url, state: 'up', queued: 0 },
    ])
  })
})

describe('a start', () => {
  it('continues where the last one ended, in order, and knows the number of attempts', async () => {
    const folder = emptyFolder()
    await using server = await startTarget(() => 503)
    const forward = [server.url]
    {
      await using database = await openDatabase({ kind: 'file', folder })
      await using rig = await createRig({ forward, database })
      for (let i = 1; i <= 5; i++) await rig.receive({ id: `${i}` })
      await rig.time.next()
      await rig.time.waited()
    }
    server.answers(200, 200, 200, 200, 200, 200)
    await using database = await openDatabase({ kind: 'file', folder })
    await using rig = await createRig({ forward, database })
    await rig.receive({ id: '6' })
    await rig.dispatcher.idle()
    const handed = server.received.map((each) =>
      ['x-github-delivery', 'x-relay-attempt'].map((name) => valuesOf(each, name)[0]),
    )
    expect(handed).toEqual([
      ['1', '1'],
      ['1', '2'],
      ['1', '3'],
      ['2', '1'],
      ['3', '1'],
      ['4', '1'],
      ['5', '1'],
      ['6', '1'],
    ])
    expect(await waiting(rig.journal)).toEqual([])
  })

  it('sends nothing before every waiting forward is read, so that deliveries taken meanwhile keep their order', async () => {
    await using server = await startTarget()
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    const forward = [server.url]
    await using before = await createRig({ forward, database, started: false })
    for (const id of ['1', '2', '3']) await before.receive({ id })
    let readOn = (): void => {}
    const paused = new Promise<void>((resolve) => (readOn = resolve))
    await using rig = await createRig({
      forward,
      database,
      started: false,
      journal: (journal) => ({
        ...journal,
        async *waiting() {
          const all = await waitingOf(journal)
          yield* all.slice(0, 1)
          await paused
          yield* all.slice(1)
        },
      }),
    })
    const started = rig.dispatcher.start()
    await rig.receive({ id: '4' })
    await rig.receive({ id: '1' })
    await new Promise(setImmediate)
    expect(server.received).toEqual([])
    readOn()
    await started
    await rig.dispatcher.idle()
    expect(server.received.map((each) => valuesOf(each, 'x-github-delivery')[0])).toEqual([
      '1',
      '2',
      '3',
      '4',
    ])
    expect(await waiting(rig.journal)).toEqual([])
  })

  it('ends when relay stops meanwhile', async () => {
    await using server = await startTarget()
    await using rig = await createRig({
      forward: [server.url],
      started: false,
      journal: (journal) => ({
        ...journal,
        async *waiting() {
          await rig.dispatcher[Symbol.asyncDispose]()
          yield* await waitingOf(journal)
        },
      }),
    })
    await rig.receive()
    await rig.dispatcher.start()
    await new Promise(setImmediate)
    expect(server.received).toEqual([])
  })
})

describe('a delivery that arrives again', () => {
  it('is forwarded when it waits unknown to the dispatcher, and once when it is known', async () => {
    await using server = await startTarget()
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    await using rig = await createRig({ forward: [server.url], database })
    await using other = await createRig({ forward: [server.url], database, started: false })
    await other.receive({ id: 'late' })
    await Promise.all([1, 2, 3].map(() => rig.receive({ id: 'late' })))
    await rig.dispatcher.idle()
    expect(server.received.map((each) => valuesOf(each, 'x-github-delivery')[0])).toEqual(['late'])
    expect(await waiting(rig.journal)).toEqual([])
  })
})

describe('routes that change', () => {
  it('let entries for a removed target wait until it returns', async () => {
    await using server = await startTarget(() => 503)
    await using rig = await createRig({ forward: [server.url] })
    const id = `*=${server.url}`
    await rig.receive({ id: 'one' })
    await rig.receive({ id: 'two' })
    await rig.time.waited()
    const since = rig.time.clock()
    rig.dispatcher.replaceRoutes([])
    await rig.receive({ id: 'three' })
    expect(rig.dispatcher.status()).toEqual([{ id, label: server.url, state: 'gone', queued: 3, since }])
    rig.time.advance(3_600_000)
    await rig.dispatcher.idle()
    expect(server.received.length).toBe(1)
    server.answers(200, 200, 200)
    rig.dispatcher.replaceRoutes(rig.routes)
    await rig.dispatcher.idle()
    expect(server.received.map((each) => valuesOf(each, 'x-github-delivery')[0])).toEqual([
      'one',
      'one',
      'two',
      'three',
    ])
    expect(rig.states.map(({ state, queued }) => [state, queued])).toEqual([
      ['gone', 2],
      ['up', 3],
    ])
  })

  it('let attempts in flight end, and forget a target for which nothing waits', async () => {
    await using server = await startTarget(() => ({ status: 200, body: 'slow', stalls: true }))
    await using rig = await createRig({ forward: [server.url], limits: { http: 200 } })
    await rig.receive()
    await server.has(1)
    rig.dispatcher.replaceRoutes([])
    await eventually(() => (rig.dispatcher.status().length === 0 ? true : undefined))
    expect((await rig.journal.attempts(1)).map(({ outcome }) => outcome)).toEqual(['succeeded'])
    expect(rig.time.waits).toEqual([])
  })

  it('fail entries for a target that was removed 24 hours ago, also when it was removed at the start', async () => {
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    await using before = await createRig({
      forward: ['push=http://127.0.0.1:9/?key=secret'],
      database,
      started: false,
    })
    await before.receive()
    await using server = await startTarget()
    await using rig = await createRig({ forward: [server.url], database })
    const since = rig.time.clock()
    const label = 'push=http://127.0.0.1:9/?…'
    const id = 'push=http://127.0.0.1:9/?key=secret'
    expect(rig.states).toEqual([{ id, label, state: 'gone', queued: 1, since }])
    rig.time.advance(24 * 3_600_000 - 1)
    expect(rig.dispatcher.status().map(({ queued }) => queued)).toEqual([0, 1])
    rig.time.advance(60_000)
    await eventually(() => (rig.dispatcher.status().length === 1 ? true : undefined))
    expect(await rig.journal.forwards(1)).toEqual({
      [id]: { status: 'failed', tries: 0, since, reason: 'older than 24 h' },
    })
    expect(rig.said).toEqual([`${label}: 1 delivery older than 24 h failed`])
    expect(rig.time.waits).toEqual([])
  })

  it('do not touch targets that stay', async () => {
    await using server = await startTarget(() => 'reset')
    await using other = await startTarget()
    await using rig = await createRig({ forward: [server.url] })
    await rig.receive()
    await rig.time.waited()
    const before = rig.dispatcher.status()
    rig.dispatcher.replaceRoutes([...rig.routes, ...rig.routes, parseForward(other.url)])
    expect(rig.dispatcher.status()).toEqual([
      ...before,
      { id: `*=${other.url}`, label: other.url, state: 'up', queued: 0 },
    ])
    expect(rig.states.map(({ state }) => state)).toEqual(['down'])
  })
})

describe('storage that fails', () => {
  it('lets an attempt be recorded later, and not be made again', async () => {
    await using server = await startTarget()
    let failures = 3
    await using rig = await createRig({
      forward: [server.url],
      journal: (journal) => ({
        ...journal,
        async record(...args) {
          if (failures-- > 0) throw new RelayError('storage', 'no room')
          await journal.record(...args)
        },
      }),
    })
    await rig.receive()
    await rig.receive()
    expect([await rig.time.next(), await rig.time.next(), await rig.time.next()]).toEqual([1000, 2000, 4000])
    await rig.dispatcher.idle()
    expect([server.received.length, await waiting(rig.journal)]).toEqual([2, []])
    expect(rig.said).toEqual([`#1 → ${server.url}: the attempt could not be recorded yet`])
  })

  it('lets an attempt be made later', async () => {
    await using server = await startTarget()
    let failures = 2
    await using rig = await createRig({
      forward: [server.url],
      journal: (journal) => ({
        ...journal,
        async read(n) {
          if (failures-- > 0) throw new RelayError('storage', 'the disk hangs')
          return journal.read(n)
        },
      }),
    })
    await rig.receive()
    await rig.receive()
    expect([await rig.time.next(), await rig.time.next()]).toEqual([1000, 2000])
    await rig.dispatcher.idle()
    expect([server.received.length, await waiting(rig.journal)]).toEqual([2, []])
    expect(rig.said).toEqual([`#1 → ${server.url}: cannot be read yet`])
  })

  it('lets others be forwarded when one entry is damaged', async () => {
    await using server = await startTarget()
    await using rig = await createRig({
      forward: [server.url],
      journal: (journal) => ({
        ...journal,
        async read(n) {
          if (n === 1) throw storageError({ code: CORRUPT, message: 'malformed' }, 'relay.db')
          return journal.read(n)
        },
      }),
    })
    await rig.receive()
    await rig.receive()
    await rig.dispatcher.idle()
    expect([server.received.length, await waiting(rig.journal)]).toEqual([1, [`1 *=${server.url} 0`]])
    expect(rig.said).toEqual([`#1 → ${server.url}: postponed until the next start`])
  })
})
