import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { parseForward } from '../../src/dispatch/route.js'
import type { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { eventually } from '../helpers/keyring.js'
import { startTarget, valuesOf } from '../helpers/target.js'
import { createRig, type Rig } from './rig.js'

const waitingOf = (journal: Journal): string[] =>
  [...journal.unfinished()].map(({ n, target, handOn }) => `${n} ${target} ${handOn.tries}`)

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
      expect(waitingOf(rig.journal)).toEqual([`1 ${target} ${answer === 503 ? 1 : 0}`, `2 ${target} 0`])
      const outcome = { hang: 'killed', reset: 'unreachable', 503: 'retry' }[answer]
      expect(rig.journal.attempts(1).map((each) => each.outcome)).toEqual([outcome])
      expect([rig.time.waits, rig.journal.attempts(2)]).toEqual([[], []])
      await rig.receive()
      rig.dispatcher.start()
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
    const attempts = next.journal
      .attempts(1)
      .map(({ outcome, answer }) => [outcome, Buffer.from(answer).toString()])
    expect(attempts).toEqual([
      ['killed', 'begun\n'],
      ['succeeded', 'again\n'],
    ])
    expect(waitingOf(next.journal)).toEqual([])
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
    expect(waitingOf(rig.journal)).toEqual([`1 *=${server.url} 0`])
  })

  it('tells those who wait for the end, also twice', async () => {
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
  it('goes on where the last one was, in order, and knows how often each was tried', async () => {
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
    expect(waitingOf(rig.journal)).toEqual([])
  })

  it('that is repeated hands nothing on twice, and finds what it was not told of', async () => {
    await using server = await startTarget()
    await using database = await openDatabase({ kind: 'memory', folder: '' })
    await using rig = await createRig({ forward: [server.url], database })
    await using other = await createRig({ forward: [server.url], database, started: false })
    for (let i = 0; i < 20; i++) await rig.receive()
    await other.receive({ id: 'theirs' })
    for (let i = 0; i < 20; i++) {
      rig.dispatcher.start()
      await new Promise(setImmediate)
    }
    await rig.dispatcher.idle()
    expect(server.received.length).toBe(21)
    expect(server.received.slice(20).map((each) => valuesOf(each, 'x-github-delivery'))).toEqual([['theirs']])
  })
})

describe('routes that change', () => {
  it('leave work for a target that is gone waiting, until it returns', async () => {
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

  it('leave what is under way to its end, and forget a target for which nothing waits', async () => {
    await using server = await startTarget(() => ({ status: 200, body: 'slow', stalls: true }))
    await using rig = await createRig({ forward: [server.url], limits: { http: 200 } })
    await rig.receive()
    await server.has(1)
    rig.dispatcher.replaceRoutes([])
    await eventually(() => (rig.dispatcher.status().length === 0 ? true : undefined))
    expect(rig.journal.attempts(1).map(({ outcome }) => outcome)).toEqual(['succeeded'])
    expect(rig.time.waits).toEqual([])
  })

  it('end work for a target that has been gone for 24 hours, also when it was gone at the start', async () => {
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
    expect(rig.journal.handOns(1)).toEqual({
      [id]: { state: 'failed', tries: 0, since, reason: 'older than 24 h' },
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

describe('an attempt that cannot be recorded', () => {
  it('is recorded later, and not made again', async () => {
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
    expect([server.received.length, waitingOf(rig.journal)]).toEqual([2, []])
    expect(rig.said).toEqual([`#1 → ${server.url}: the attempt could not be recorded yet`])
  })

  it('does not stop others when an entry cannot even be read', async () => {
    await using server = await startTarget()
    await using rig = await createRig({
      forward: [server.url],
      journal: (journal) => ({
        ...journal,
        read(n) {
          if (n === 1) throw new RelayError('storage', 'written by a newer version')
          return journal.read(n)
        },
      }),
    })
    await rig.receive()
    await rig.receive()
    await rig.dispatcher.idle()
    expect([server.received.length, waitingOf(rig.journal)]).toEqual([1, [`1 *=${server.url} 0`]])
    expect(rig.said).toEqual([`#1 → ${server.url}: put off until the next start`])
  })
})
