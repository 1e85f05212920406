import { describe, expect, it } from 'vitest'
import { attemptLine, attemptObject } from '../../../src/cli/output/attempt-line.js'
import { deliveryLine } from '../../../src/cli/output/delivery-line.js'
import { targetLine, targetObject } from '../../../src/cli/commands/serve/target-line.js'
import type { AttemptEvent } from '../../../src/dispatch/attempt.js'
import { parseExec, parseForward } from '../../../src/dispatch/route.js'
import { attempt, delivery, failed, NOW, succeeded, waiting } from '../../journal/rig.js'
import { plain } from '../rig.js'

process.env['TZ'] = 'Asia/Kolkata'

const START = '03:43:20  #7  issues.opened  octo/demo#7  → '
const HTTP = parseForward('http://u:canary@localhost:3000/?token=canary')
const EXEC = parseExec('push=./deploy.sh')

function event(more: Partial<AttemptEvent> & Pick<AttemptEvent, 'attempt' | 'forward'>): AttemptEvent {
  const { body: _, ...entry } = delivery('a', { event: 'issues', action: 'opened' })
  return { n: 7, entry: { ...entry, n: 7, duplicates: 0 }, route: HTTP, ...more }
}

const down = { outcome: 'unreachable', status: null, ms: 3, error: 'connection refused' } as const

describe('an attempt, on a line', () => {
  it.each<[string, AttemptEvent]>([
    [
      'http://***@localhost:3000/?… 202 38ms',
      event({ attempt: attempt(HTTP.id, { status: 202 }), forward: succeeded }),
    ],
    [
      'push=exec:./deploy.sh exit 0 61.2s',
      event({ route: EXEC, attempt: attempt(EXEC.id, { status: 0, ms: 61_234 }), forward: succeeded }),
    ],
    [
      'http://***@localhost:3000/?… 500 38ms  again in 2s',
      event({
        attempt: attempt(HTTP.id, { outcome: 'retry', status: 500 }),
        forward: waiting,
        retryAt: NOW + 5 + 38 + 1900,
      }),
    ],
    [
      'http://***@localhost:3000/?… 500 38ms  failed: answered 500 five times',
      event({ attempt: attempt(HTTP.id, { outcome: 'retry', status: 500 }), forward: failed }),
    ],
    [
      'http://***@localhost:3000/?… unreachable 3ms  connection refused',
      event({ attempt: attempt(HTTP.id, down), forward: waiting }),
    ],
    [
      'push=exec:./deploy.sh killed 38ms  waiting',
      event({
        route: EXEC,
        attempt: attempt(EXEC.id, { outcome: 'killed', status: null }),
        forward: waiting,
      }),
    ],
    [
      String.raw`http://***@localhost:3000/?… 404 38ms  failed: \u{1b}`,
      event({
        attempt: attempt(HTTP.id, { outcome: 'refused', status: 404 }),
        forward: { ...failed, reason: '\u001b' },
      }),
    ],
  ])('%s', (end, given) => {
    expect(plain(attemptLine(given))).toBe(START + end)
  })

  it('follows that of the delivery in the same columns', () => {
    const receipt = { n: 7, duplicate: false, targets: [] }
    const given = delivery('a', { event: 'issues', action: 'opened' })
    expect(plain(deliveryLine(given, receipt))).toBe(START.slice(0, -4))
    expect(plain(deliveryLine(given, { ...receipt, duplicate: true }))).toBe(
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
      ref: null,
      state: 'waiting',
      reason: null,
      retryAt: '2023-11-14T22:13:22.000Z',
    }
    expect(attemptObject(event({ attempt: retry, forward: waiting, retryAt }))).toEqual(object)
    expect(attemptObject(event({ attempt: attempt(HTTP.id, down), forward: failed }))).toEqual({
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
    expect(plain(targetLine({ id, label, ...status }, NOW))).toBe(
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
