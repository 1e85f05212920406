import { describe, expect, it } from 'vitest'
import { exitOutcome, MAX_AGE_MS, nextStatus, statusOutcome } from '../../src/dispatch/policy.js'
import type { DeliveryResult } from '../../src/dispatch/target.js'
import type { Forward } from '../../src/journal/forward.js'

const result = (over: Partial<DeliveryResult>): DeliveryResult => ({
  outcome: 'succeeded',
  status: 200,
  answer: new Uint8Array(),
  error: null,
  ...over,
})
const since = 1000
const waiting: Forward = { status: 'waiting', tries: 2, since }

describe('statusOutcome', () => {
  it('takes every 2xx for success, asks again after 408, 425, 429 and 5xx, and gives up after all others', () => {
    const by = new Map<string, number[]>()
    for (let status = 200; status < 600; status++) {
      const outcome = statusOutcome(status)
      by.set(outcome, [...(by.get(outcome) ?? []), status])
    }
    expect(by.get('succeeded')).toEqual(Array.from({ length: 100 }, (_, i) => 200 + i))
    expect(by.get('retry')).toEqual([408, 425, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)])
    expect(by.get('refused')).toHaveLength(197)
  })
})

describe('exitOutcome', () => {
  it('runs a command again only when it asks for that', () => {
    expect([0, 1, 2, 74, 75, 76, 127, 255].map(exitOutcome)).toEqual([
      'succeeded',
      'refused',
      'refused',
      'refused',
      'retry',
      'refused',
      'refused',
      'refused',
    ])
  })
})

describe('nextStatus', () => {
  it('ends with success', () => {
    expect(nextStatus(waiting, result({}), since)).toEqual({ status: 'succeeded', tries: 2, since })
  })

  it('ends with a refusal, and says what was answered', () => {
    expect(nextStatus(waiting, result({ outcome: 'refused', status: 410 }), since)).toEqual({
      status: 'failed',
      tries: 2,
      since,
      reason: 'answered 410',
    })
    expect(
      nextStatus(waiting, result({ outcome: 'refused', status: 3, error: 'exit code 3' }), since),
    ).toEqual({
      status: 'failed',
      tries: 2,
      since,
      reason: 'exit code 3',
    })
  })

  it('counts the answers that ask for a retry, and ends with the fifth', () => {
    const busy = result({ outcome: 'retry', status: 503 })
    const stands: Forward[] = [{ status: 'waiting', tries: 0, since }]
    for (let i = 0; i < 5; i++) stands.push(nextStatus(stands.at(-1) ?? waiting, busy, since))
    expect(stands.slice(1)).toEqual([
      ...[1, 2, 3, 4].map((tries) => ({ status: 'waiting', tries, since })),
      { status: 'failed', tries: 5, since, reason: 'answered 503, 5 times' },
    ])
  })

  it.each(['unreachable', 'timed out'] as const)(
    'waits when the target is %s, until a day has passed',
    (outcome) => {
      const down = result({ outcome, status: null, error: 'why' })
      expect(nextStatus(waiting, down, since + MAX_AGE_MS - 1)).toEqual(waiting)
      expect(nextStatus(waiting, down, since + MAX_AGE_MS)).toEqual({
        status: 'failed',
        tries: 2,
        since,
        reason: 'older than 24 h',
      })
    },
  )

  it('waits when relay stopped, however long it has waited', () => {
    expect(nextStatus(waiting, result({ outcome: 'killed', status: null }), since + 2 * MAX_AGE_MS)).toEqual(
      waiting,
    )
  })
})
