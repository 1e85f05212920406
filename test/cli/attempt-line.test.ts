import { describe, expect, it } from 'vitest'
import { Chalk } from 'chalk'
import { attemptLine, attemptObject } from '../../src/cli/attempt-line.js'
import { deliveryLine } from '../../src/cli/delivery-line.js'
import { targetLine, targetObject } from '../../src/cli/target-line.js'
import type { AttemptEvent } from '../../src/dispatch/hand-over.js'
import { parseExec, parseForward } from '../../src/dispatch/route.js'
import { attempt, delivery, failed, NOW, succeeded, waiting } from '../journal/rig.js'

process.env['TZ'] = 'Asia/Kolkata'

const paint = new Chalk({ level: 0 })
const START = '03:43:20  #7  issues.opened  octo/demo#7  → '
const HTTP = parseForward('http://u:canary@localhost:3000/?token=canary')
const EXEC = parseExec('push=./deploy.sh')

function event(more: Partial<AttemptEvent> & Pick<AttemptEvent, 'attempt' | 'handOn'>): AttemptEvent {
  const { body: _, ...entry } = delivery('a', { event: 'issues', action: 'opened' })
  return { n: 7, entry: { ...entry, n: 7, duplicates: 0 }, route: HTTP, ...more }
}

const down = { outcome: 'unreachable', status: null, ms: 3, error: 'connection refused' } as const

describe('an attempt, on a line', () => {
  it.each<[string, AttemptEvent]>([
    [
      'http://***@localhost:3000/?… 202 38ms',
      event({ attempt: attempt(HTTP.id, { status: 202 }), handOn: succeeded }),
    ],
    [
      'push=exec:./deploy.sh exit 0 61.2s',
      event({ route: EXEC, attempt: attempt(EXEC.id, { status: 0, ms: 61_234 }), handOn: succeeded }),
    ],
    [
      'http://***@localhost:3000/?… 500 38ms  again in 2s',
      event({
        attempt: attempt(HTTP.id, { outcome: 'retry', status: 500 }),
        handOn: waiting,
        retryAt: NOW + 5 + 38 + 1900,
      }),
    ],
    [
      'http://***@localhost:3000/?… 500 38ms  failed: answered 500 five times',
      event({ attempt: attempt(HTTP.id, { outcome: 'retry', status: 500 }), handOn: failed }),
    ],
    [
      'http://***@localhost:3000/?… unreachable 3ms  connection refused',
      event({ attempt: attempt(HTTP.id, down), handOn: waiting }),
    ],
    [
      'push=exec:./deploy.sh killed 38ms  waiting',
      event({
        route: EXEC,
        attempt: attempt(EXEC.id, { outcome: 'killed', status: null }),
        handOn: waiting,
      }),
    ],
    [
      String.raw`http://***@localhost:3000/?… 404 38ms  failed: \u{1b}`,
      event({
        attempt: attempt(HTTP.id, { outcome: 'refused', status: 404 }),
        handOn: { ...failed, reason: '\u001b' },
      }),
    ],
  ])('%s', (end, given) => {
    expect(attemptLine(given, paint)).toBe(START + end)
  })

  it('follows that of the delivery in the same columns', () => {
    const receipt = { n: 7, duplicate: false, targets: [] }
    const given = delivery('a', { event: 'issues', action: 'opened' })
    expect(deliveryLine(given, receipt, paint)).toBe(START.slice(0, -4))
    expect(deliveryLine(given, { ...receipt, duplicate: true }, paint)).toBe(
      `${START.slice(0, -4)}  duplicate`,
    )
  })

  it('is an object for a program', () => {
    const retryAt = NOW + 2000
    const retry = attempt(HTTP.id, { outcome: 'retry', status: 503, error: null })
    const object = {
      type: 'attempt',
      n: 7,
      time: '2023-11-14T22:13:20.005Z',
      target: 'http://***@localhost:3000/?…',
      outcome: 'retry',
      status: 503,
      ms: 38,
      error: null,
      event: 'issues',
      action: 'opened',
      repo: 'octo/demo',
      number: 7,
      state: 'waiting',
      reason: null,
      retryAt: '2023-11-14T22:13:22.000Z',
    }
    expect(attemptObject(event({ attempt: retry, handOn: waiting, retryAt }))).toEqual(object)
    expect(attemptObject(event({ attempt: attempt(HTTP.id, down), handOn: failed }))).toEqual({
      ...object,
      ...down,
      state: 'failed',
      reason: 'answered 500 five times',
      retryAt: null,
    })
  })
})

describe('a target whose state changes, on a line', () => {
  const { id, label } = HTTP
  const since = NOW - 1000

  it.each([
    ['is down: 3 waiting, next try in 2s', { state: 'down', queued: 3, since, nextProbeAt: NOW + 1800 }],
    ['is down: 1 waiting', { state: 'down', queued: 1, since }],
    ['is back: 3 waiting', { state: 'up', queued: 3 }],
    ['is no longer configured: 2 waiting, 24 h at most', { state: 'gone', queued: 2, since }],
  ] as const)('%s', (words, status) => {
    expect(targetLine({ id, label, ...status }, NOW, paint)).toBe(
      `03:43:20  http://***@localhost:3000/?… ${words}`,
    )
  })

  it('is an object for a program', () => {
    const target = { type: 'target', target: 'http://***@localhost:3000/?…' }
    expect(targetObject({ id, label, state: 'down', queued: 3, since, nextProbeAt: NOW })).toEqual({
      ...target,
      state: 'down',
      queued: 3,
      since: '2023-11-14T22:13:19.000Z',
      nextTryAt: '2023-11-14T22:13:20.000Z',
    })
    expect(targetObject({ id, label, state: 'up', queued: 0 })).toEqual({
      ...target,
      state: 'up',
      queued: 0,
      since: null,
      nextTryAt: null,
    })
  })
})
