import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createRefusals, refusalHint } from '../../src/webhook/refusals.js'
import { type DeliveryOptions, GITHUB, githubDelivery, SECRETS } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { watchTurns } from '../helpers/turns.js'
import { recordingLog } from '../http/edge.js'

const LIMIT = 65_536
const refused = (why: string, claim = 'event push, delivery d-1'): string =>
  `warn POST /webhook was answered 401: ${why} (unproved: ${claim})`
const OTHER = 'signed with another secret, or the body was changed on its way'
const LARGE = 'its signature does not match, and its body is too large to analyse'
const NONE = 'there is no X-Hub-Signature-256: does the webhook have a secret at the code host?'
const other = (set: DeliveryOptions['set'] = {}) => githubDelivery({ id: 'd-1', secret: 'other', set })
const large = (length: number) =>
  githubDelivery({ id: 'd-1', body: 'x'.repeat(length), set: { 'X-Hub-Signature-256': undefined } })

function setUp() {
  const { log, lines } = recordingLog()
  const onRefused = createRefusals({ secrets: SECRETS, scheme: GITHUB.webhook, log })
  return {
    onRefused,
    logged: lines,
    /** Waits for this many new log lines, then removes and returns all of them. */
    takeLines: async (count: number) => {
      do await setImmediate()
      while (lines.length < count)
      return lines.splice(0)
    },
  }
}

describe('the log line of a refused delivery', () => {
  afterEach(() => void vi.useRealTimers())

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

describeWith('Linux', 'analysing a refused delivery', () => {
  it.each([
    ['short strings', (length: number) => `[${'"",'.repeat(length / 3)}0]`],
    ['HTML', (length: number) => `["${'<é'.repeat(length / 3)}"]`],
    ['escapes', (length: number) => `["${String.raw`\u001b`.repeat(length / 6)}"]`],
  ])('blocks the event loop for less than 50 ms: %s', async (_, make) => {
    const parts = { secrets: { ...SECRETS, previous: SECRETS.current }, scheme: GITHUB.webhook }
    for (const length of [64_000, 260_000]) {
      const request = githubDelivery({ body: make(length), secret: 'other' })
      // The first run includes compilation.
      await refusalHint(request, parts)
      using turns = watchTurns()
      const hint = await refusalHint(request, parts)
      expect([length, turns.longest()]).toEqual([length, expect.toSatisfy((longest) => longest < 50)])
      expect(hint).toBe(length < LIMIT ? OTHER : LARGE)
    }
  })
})
