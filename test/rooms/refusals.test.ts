import { Secret } from '../../src/base/secret.js'
import { schemeOf } from '../../src/codehost/schemes.js'
import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { WebhookRequest } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import { type RefusedKind, RefusedList } from '../../src/webhook/refused.js'
import { type DeliveryOptions, githubDelivery, SECRET } from '../kit/delivery.js'
import { recordingLog } from '../helpers/log.js'

const GITHUB = schemeOf('github')
const SECRETS = { current: new Secret(SECRET) }

const OTHER = 'signed with another secret, or the body was changed on its way'
const other = (set: DeliveryOptions['set'] = {}) => githubDelivery({ id: 'd-1', secret: 'other', set })

const unproved = new RelayError('invalid_signature', 'Invalid signature')

function setUp() {
  const { log, lines } = recordingLog()
  const parts = { secrets: SECRETS, scheme: GITHUB, maxBody: 1000, log }
  const refusals = new Refusals({ ...parts, clock: () => 1000 })
  const error = new RelayError('invalid_signature', 'Invalid signature')
  return {
    refusals,
    onRefused: (request: WebhookRequest) => expect(refusals.http(error, request)).toBe(error),
    logged: lines,
    /** Waits for this many new log lines, then removes and returns all of them. */
    takeLines: async (count: number) => {
      do await setImmediate()
      while (lines.length < count)
      return lines.splice(0)
    },
  }
}

afterEach(() => void vi.useRealTimers())

describe('the list of refused requests', () => {
  it('has what came over HTTP and through the tunnel, without credentials', async () => {
    const { refusals, takeLines } = setUp()
    const tooLarge = new RelayError('too_large', 'Request too large')
    const event = new Error('the payload is of issues, not of the event that the header names')
    const wrongEvent = new RelayError('invalid_event', 'Invalid event', { cause: event })
    const request = other({ Authorization: 'Bearer x' })
    refusals.http(new RelayError('invalid_signature', 'Invalid signature'), request)
    refusals.http(tooLarge, { headers: [['Content-Length', '2000']], body: new Uint8Array() })
    refusals.http(new RelayError('storage', 'Delivery could not be stored'), request)
    refusals.misdirected([['X-GitHub-Event', 'push']], 404)
    await refusals.tunnel(request, wrongEvent)
    await refusals.tunnel({ ...request, headers: [] }, unproved, () => 'unverifiable')
    await takeLines(3)
    const list = await Promise.all(
      refusals.list.list().map(async ({ reason, ...refused }) => ({ ...refused, reason: await reason() })),
    )
    const at = { at: 1000 }
    const claim = { event: 'push', deliveryId: 'd-1' }
    const none = { event: null, deliveryId: null }
    const headers = request.headers.filter(([name]) => name !== 'Authorization')
    const whole = { headers, body: new Uint8Array(request.body), size: request.body.length }
    const http = { ...at, via: 'http' }
    const tunnel = { ...at, via: 'tunnel' }
    expect(list).toEqual([
      { id: 1, ...http, status: 401, kind: 'invalid_signature', reason: OTHER, ...claim, ...whole },
      {
        id: 2,
        ...http,
        status: 413,
        kind: 'too_large',
        reason: '2,000 bytes, the limit is 1,000 bytes. Raise --max-body, then redeliver it at the code host',
        ...none,
        headers: [['Content-Length', '2000']],
        body: new Uint8Array(),
        size: 2000,
      },
      {
        id: 3,
        ...http,
        status: 404,
        kind: 'wrong_path',
        reason: 'it looks like a delivery: the payload URL of the webhook must end in /webhook',
        event: 'push',
        deliveryId: null,
        headers: [['X-GitHub-Event', 'push']],
        body: new Uint8Array(),
        size: 0,
      },
      { id: 4, ...tunnel, status: 400, kind: 'invalid_event', reason: event.message, ...claim, ...whole },
      {
        id: 5,
        ...tunnel,
        status: 401,
        kind: 'no_signature',
        reason: 'unverifiable',
        ...none,
        ...whole,
        headers: [],
      },
    ])
  })
})

const KINDS = ['no_signature', 'invalid_signature', 'too_large'] as const
const entry = (kind: RefusedKind, length = 0) => ({
  at: 1000,
  via: 'tunnel' as const,
  status: 401,
  kind,
  reason: () => Promise.resolve('unverifiable'),
  event: 'push',
  deliveryId: 'd-1',
  headers: [],
  body: new Uint8Array(length),
  size: length,
})

describe('the list itself', () => {
  it('keeps the rare ones through a flood of others, and counts all', () => {
    const list = new RefusedList()
    list.add(entry('invalid_signature'))
    for (let i = 0; i < 1000; i++) list.add(entry('no_signature'))
    expect(list.list().map(({ id }) => id)).toEqual([1, ...Array.from({ length: 99 }, (_, i) => i + 903)])
    expect(list.counts()).toEqual({ invalid_signature: 1, no_signature: 1000 })
  })

  it('holds a hundred, 256 KiB of each body and 8 MiB in all, whatever comes, and in order', () => {
    const some = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat({ max: 300_000 })), { maxLength: 150 })
    const few = fc.array(fc.tuple(fc.constantFrom(...KINDS), fc.nat({ max: 20 })), {
      minLength: 90,
      maxLength: 120,
    })
    fc.assert(
      fc.property(fc.oneof(some, few), (given) => {
        const list = new RefusedList()
        for (const [kind, length] of given) list.add(entry(kind, length))
        const kept = list.list()
        const total = kept.reduce((sum, { body }) => sum + body.length, 0)
        expect([
          kept.length <= 100,
          kept.length >= Math.min(given.length, 32),
          total <= 8_388_608,
          kept.map(({ id }) => id),
        ]).toEqual([true, true, true, kept.map(({ id }) => id).toSorted((one, other) => one - other)])
      }),
      { numRuns: 30 },
    )
  })
})
