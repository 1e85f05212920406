import { describe, expect, it } from 'vitest'
import type { Attempt } from '../../src/journal/forward.js'
import { type Answer, startTarget, valuesOf } from '../helpers/target.js'
import { createRig, type Rig } from './rig.js'
import { waitingOf } from '../helpers/journal.js'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

/** The recorded attempts, without their times. */
async function attemptsOf(
  { journal }: Rig,
  n: number,
): Promise<Pick<Attempt, 'outcome' | 'status' | 'error' | 'count'>[]> {
  const attempts = await journal.attempts(n)
  return attempts.map(({ outcome, status, error, count }) => ({ outcome, status, error, count }))
}

const attempt = (
  outcome: Attempt['outcome'],
  status: number | null,
  error: string | null = null,
  count = 1,
) => ({
  outcome,
  status,
  error,
  count,
})

describe('a delivery', () => {
  it('is forwarded, and the attempt is recorded and reported', async () => {
    await using server = await startTarget(() => ({ status: 202, body: 'thanks' }))
    await using rig = await createRig({ forward: [server.url] })
    const at = rig.time.clock()
    await rig.receive({
      event: 'issues',
      id: 'one',
      body: '{"action":"opened","repository":{"full_name":"octo/demo"}}',
    })
    await rig.dispatcher.idle()
    const target = `*=${server.url}`
    const made = {
      at,
      target,
      outcome: 'succeeded',
      status: 202,
      ms: 0,
      answer: new Uint8Array(Buffer.from('thanks')),
      headers: expect.arrayContaining([['connection', 'keep-alive']]),
      error: null,
      count: 1,
    }
    const forward = { status: 'succeeded', tries: 0, since: at }
    const { body: _, ...entry } = (await rig.journal.read(1)) ?? { body: null }
    expect(await rig.journal.attempts(1)).toEqual([made])
    expect(await rig.journal.forwards(1)).toEqual({ [target]: forward })
    expect(rig.attempts).toEqual([{ n: 1, entry, route: rig.routes[0], attempt: made, forward }])
    expect(rig.dispatcher.status()).toEqual([{ id: target, label: server.url, state: 'up', queued: 0 }])
    expect([rig.states, rig.said]).toEqual([[], []])
  })

  it('goes to each target at its own pace', async () => {
    await using slow = await startTarget(() => 'hang')
    await using fast = await startTarget()
    await using rig = await createRig({
      forward: [slow.url, fast.url],
      exec: ['cat'],
      limits: { http: 60_000 },
    })
    for (let i = 0; i < 10; i++) await rig.receive()
    await fast.has(10)
    expect([slow.received.length, rig.dispatcher.status()[0]?.queued]).toEqual([1, 10])
  })

  it('that arrives again is forwarded only to targets where it failed', async () => {
    await using good = await startTarget()
    await using bad = await startTarget(() => 400)
    await using rig = await createRig({ forward: [good.url, bad.url] })
    await rig.receive({ id: 'one' })
    await rig.dispatcher.idle()
    bad.answers(200)
    await rig.receive({ id: 'one' })
    await rig.dispatcher.idle()
    await rig.receive({ id: 'one' })
    await rig.dispatcher.idle()
    expect([good.received.length, bad.received.length]).toEqual([1, 2])
    expect(bad.received.map((handed) => valuesOf(handed, 'x-relay-attempt'))).toEqual([['1'], ['2']])
    expect(Object.values(await rig.journal.forwards(1)).map(({ status: state }) => state)).toEqual([
      'succeeded',
      'succeeded',
    ])
  })
})

describe('a target that answers', () => {
  it.each<[string, Answer[], number[], Attempt['outcome'][], string, string | undefined]>([
    ['500, then 200', [500, 200], [1000], ['retry', 'succeeded'], 'succeeded', undefined],
    [
      '503 five times',
      [503, 503, 503, 503, 503],
      [1000, 4000, 15_000, 40_000],
      Array(5).fill('retry'),
      'failed',
      'answered 503, 5 times',
    ],
    [
      '429 with Retry-After in seconds',
      [{ status: 429, headers: { 'retry-after': '7' } }],
      [7000],
      ['retry', 'succeeded'],
      'succeeded',
      undefined,
    ],
    [
      '429 with Retry-After as a date',
      [
        {
          status: 429,
          headers: { date: 'Fri, 20 Nov 2026 10:00:00 GMT', 'retry-after': 'Fri, 20 Nov 2026 10:00:31 GMT' },
        },
      ],
      [31_000],
      ['retry', 'succeeded'],
      'succeeded',
      undefined,
    ],
    [
      '503 with an hour of Retry-After',
      [{ status: 503, headers: { 'retry-after': '3600' } }],
      [60_000],
      ['retry', 'succeeded'],
      'succeeded',
      undefined,
    ],
    ['410', [410], [], ['refused'], 'failed', 'answered 410'],
    [
      '302',
      [{ status: 302, headers: { location: '/elsewhere' } }],
      [],
      ['refused'],
      'failed',
      'answered 302',
    ],
  ])('%s', async (_, answers, waits, outcomes, state, reason) => {
    await using server = await startTarget()
    await using rig = await createRig({ forward: [server.url] })
    server.answers(...answers)
    await rig.receive({ id: 'first' })
    const since = rig.time.clock()
    await rig.receive({ id: 'second' })
    const waited: number[] = []
    for (let i = 0; i < waits.length; i++) waited.push(await rig.time.next())
    await rig.dispatcher.idle()
    expect(waited).toEqual(waits)
    expect(rig.attempts.filter(({ n }) => n === 1).map((each) => each.attempt.outcome)).toEqual(outcomes)
    const tries = outcomes.filter((outcome) => outcome === 'retry').length
    expect((await rig.journal.forwards(1))[`*=${server.url}`]).toEqual({
      status: state,
      tries,
      since,
      ...(reason && { reason }),
    })
    // The next one waited for its turn.
    const ids = server.received.map((handed) => valuesOf(handed, 'x-github-delivery')[0])
    expect(ids).toEqual([...outcomes.map(() => 'first'), 'second'])
    expect(server.received.map((handed) => valuesOf(handed, 'x-relay-attempt')[0])).toEqual([
      ...outcomes.map((_, i) => String(i + 1)),
      '1',
    ])
    expect(rig.states).toEqual([])
  })
})

describe('a target that does not answer', () => {
  it.each<[string, Answer, string | null]>([
    ['hangs', 'hang', 'no answer within 0.15 s'],
    ['resets the connection', 'reset', 'connection closed before an answer'],
  ])('but %s is down until it does', async (_, answer, error) => {
    await using server = await startTarget()
    await using rig = await createRig({ forward: [server.url], limits: { http: 150 } })
    server.answers(answer, answer, answer)
    const since = rig.time.clock()
    await rig.receive({ id: 'first' })
    await rig.receive({ id: 'second' })
    const waits = [await rig.time.next(), await rig.time.next(), await rig.time.next()]
    await rig.dispatcher.idle()
    expect(waits).toEqual([1000, 1000, 1000])
    const outcome = answer === 'hang' ? 'timed out' : 'unreachable'
    expect(await attemptsOf(rig, 1)).toEqual([attempt(outcome, null, error, 3), attempt('succeeded', 200)])
    expect(await attemptsOf(rig, 2)).toEqual([attempt('succeeded', 200)])
    const id = `*=${server.url}`
    expect(rig.states).toEqual([
      { id, label: server.url, state: 'down', queued: 2, since, nextProbeAt: since + 1000 },
      { id, label: server.url, state: 'up', queued: 1 },
    ])
  })

  it('gets everything in order once it does, however much has arrived meanwhile', async () => {
    const COUNT = 300
    await using server = await startTarget()
    await using rig = await createRig({ forward: [server.url] })
    const send = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i++) await rig.receive({ id: `${i}`, body: JSON.stringify({ i }) })
    }
    const sending = send(0, COUNT / 3)
    await server.has(20)
    await server.down()
    await sending
    await rig.time.next()
    const more = send(COUNT / 3, (COUNT / 3) * 2)
    for (let i = 0; i < 6; i++) await rig.time.next()
    await more
    expect(rig.dispatcher.status()).toMatchObject([{ state: 'down' }])
    expect(rig.dispatcher.status()[0]?.queued).toBeGreaterThan(COUNT / 3)
    await rig.time.waited()
    await server.up()
    const last = send((COUNT / 3) * 2, COUNT)
    await rig.time.next()
    await last
    await rig.dispatcher.idle()
    const bodies = server.received.map(({ body }) => text(body))
    // The attempt in flight when the target went down may have reached it.
    expect(bodies.filter((body, i) => body !== bodies[i - 1])).toEqual(
      Array.from({ length: COUNT }, (_, i) => JSON.stringify({ i })),
    )
    expect(rig.states.map(({ state }) => state)).toEqual(['down', 'up'])
    expect(await waitingOf(rig.journal)).toEqual([])
  })

  it('has entries failed that waited for 24 hours, and only those', async () => {
    await using server = await startTarget()
    await server.down()
    await using rig = await createRig({ forward: [server.url] })
    const since = rig.time.clock()
    for (const id of ['1', '2', '3']) await rig.receive({ id })
    await rig.time.next()
    await rig.time.waited()
    rig.time.advance(12 * 3_600_000)
    await rig.receive({ id: '4' })
    await rig.time.waited()
    await server.up()
    server.answers('reset')
    rig.time.advance(12 * 3_600_000 - 3000)
    await rig.time.waited()
    expect((await waitingOf(rig.journal)).map(({ n }) => n)).toEqual([1, 2, 3, 4])
    await server.down()
    rig.time.advance(60_000)
    await rig.time.waited()
    await server.up()
    await rig.time.next()
    await rig.dispatcher.idle()
    const failed = { status: 'failed', tries: 0, since, reason: 'older than 24 h' }
    const target = `*=${server.url}`
    const forwards = await Promise.all([1, 2, 3].map((n) => rig.journal.forwards(n)))
    expect(forwards.map((each) => each[target])).toEqual([failed, failed, failed])
    expect((await rig.journal.forwards(4))[target]?.status).toBe('succeeded')
    expect(rig.said).toEqual([`${server.url}: 2 deliveries older than 24 h failed`])
  })

  it('has no entry failed because the clock was set ahead', async () => {
    await using server = await startTarget()
    await server.down()
    await using rig = await createRig({ forward: [server.url] })
    for (const id of ['1', '2']) await rig.receive({ id })
    await rig.time.next()
    const day = 24 * 3_600_000
    rig.time.behind = day
    rig.time.advance(day)
    await rig.time.waited()
    await rig.time.next()
    await rig.time.waited()
    await server.up()
    await rig.time.next()
    await rig.dispatcher.idle()
    expect(server.received.length).toBe(2)
  })
})

describe('a command', () => {
  it('is run for each of its deliveries, and again when it asks for that', async () => {
    await using rig = await createRig({
      exec: ['issues.opened=cat; echo " $RELAY_EVENT.$RELAY_ACTION" >&2; exit 75'],
    })
    await rig.receive({ event: 'issues', body: '{"action":"opened"}' })
    await rig.receive({ event: 'issues', body: '{"action":"closed"}' })
    const waits = [await rig.time.next(), await rig.time.next(), await rig.time.next(), await rig.time.next()]
    await rig.dispatcher.idle()
    expect(waits).toEqual([1000, 4000, 15_000, 40_000])
    expect(rig.attempts.map(({ n, attempt }) => [n, attempt.status, text(attempt.answer)])).toEqual(
      Array.from({ length: 5 }, () => [1, 75, '{"action":"opened"} issues.opened\n']),
    )
    expect(Object.values(await rig.journal.forwards(1))).toMatchObject([
      { status: 'failed', reason: 'exit code 75, 5 times' },
    ])
    expect(await rig.journal.forwards(2)).toEqual({})
  })
})
