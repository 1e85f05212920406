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
import { recordingLog } from './recording-log.js'

const GITHUB = schemeOf('github')
const SECRETS = { current: new Secret(SECRET) }

const LIMIT = 65_536
const refused = (why: string, claim = 'event push, delivery d-1'): string =>
  `warn POST /webhook was answered 401: ${why} (unproved: ${claim}; relay show refused:1)`
const OTHER = 'signed with another secret, or the body was changed on its way'
const LARGE = 'its signature does not match, and its body is too large to analyse'
const NONE = 'there is no X-Hub-Signature-256: does the webhook have a secret at the code host?'
const other = (set: DeliveryOptions['set'] = {}) => githubDelivery({ id: 'd-1', secret: 'other', set })
const large = (length: number) =>
  githubDelivery({ id: 'd-1', body: 'x'.repeat(length), set: { 'X-Hub-Signature-256': undefined } })

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

describe('the log line of a refused delivery', () => {
  it('gives the reason, after the request was answered', async () => {
    const { onRefused, logged, takeLines } = setUp()
    onRefused(other())
    expect(logged).toEqual([])
    expect(await takeLines(1)).toEqual([refused(OTHER)])
  })

  it.each<[string, DeliveryOptions['set']]>([
    ['event (none), delivery (none)', { 'X-GitHub-Event': undefined, 'X-GitHub-Delivery': undefined }],
    [
      'event issues, delivery d-2',
      {
        'X-GitHub-Event': undefined,
        'X-Provider-Event': 'issues',
        'X-GitHub-Delivery': undefined,
        'X-Provider-Delivery': 'd-2',
      },
    ],
    [
      String.raw`event "a\")", delivery "d-1 was stored"`,
      { 'X-GitHub-Event': 'a")', 'X-GitHub-Delivery': 'd-1 was stored' },
    ],
    [
      `event "push", delivery "${'x'.repeat(199)}…"`,
      { 'X-GitHub-Event': ['push', 'push'], 'X-GitHub-Delivery': 'x'.repeat(8000) },
    ],
  ])('includes what the request claims to be: %s', async (claim, set) => {
    const { onRefused, takeLines } = setUp()
    onRefused(other(set))
    expect(await takeLines(1)).toEqual([refused(OTHER, claim)])
  })

  it('is written once a second, with the number of further refusals', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { onRefused, takeLines } = setUp()
    for (let i = 0; i < 50; i++) onRefused(other())
    expect(await takeLines(1)).toEqual([refused(OTHER)])
    vi.advanceTimersByTime(999)
    onRefused(other())
    expect(await takeLines(0)).toEqual([])
    vi.advanceTimersByTime(1)
    expect(await takeLines(1)).toEqual([
      'warn answered 401: Invalid signature … and 50 more like it in the last second',
    ])
  })

  it.each([
    [LIMIT, NONE],
    [LIMIT + 1, LARGE],
  ])('analyses at most 64 KiB: %i', async (length, why) => {
    const { onRefused, takeLines } = setUp()
    onRefused(large(length))
    expect(await takeLines(1)).toEqual([refused(why)])
  })
})

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

  it('counts further refusals of each kind apart', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { refusals, logged } = setUp()
    const reason = (): string => 'unverifiable'
    for (let i = 0; i < 3; i++) {
      await refusals.tunnel(other(), unproved, reason)
      await refusals.tunnel(githubDelivery({ set: { 'X-Hub-Signature-256': 'x' } }), unproved, reason)
    }
    const first = logged.splice(0).map((line) => line.slice(0, line.indexOf('(')))
    expect(first).toEqual(Array.from({ length: 2 }, () => 'warn a tunnel message was refused: unverifiable '))
    vi.advanceTimersByTime(1000)
    expect(logged).toEqual([
      'warn a tunnel message was refused: Invalid signature … and 2 more like it in the last second',
      'warn a tunnel message was refused: no well-formed signature … and 2 more like it in the last second',
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
  it('gives each a number and keeps the start of its body', () => {
    const list = new RefusedList()
    const [short, long] = [entry('no_signature', 20), entry('too_large', 262_145)]
    const kept = { ...long, id: 2, body: new Uint8Array(262_144) }
    expect([short, long].map((one) => list.add(one))).toEqual([{ ...short, id: 1 }, kept])
    expect([list.list().map(({ id }) => id), list.get(2), list.get(3)]).toEqual([[1, 2], kept, undefined])
  })

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
