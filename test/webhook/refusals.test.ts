import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createRefusals } from '../../src/webhook/refusals.js'
import { GITHUB, githubDelivery, SECRETS } from '../helpers/delivery.js'
import { recordingLog } from '../http/edge.js'

const LIMIT = 262_144
const OTHER = 'warn a delivery was refused: signed with another secret, or the body was changed on its way'
const LARGE = 'warn a delivery was refused: its signature does not fit, and it is too large to look into'
const NONE =
  'warn a delivery was refused: there is no X-Hub-Signature-256: has the webhook a secret at the code host?'
const other = githubDelivery({ secret: 'other' })
const large = (length: number) =>
  githubDelivery({ body: 'x'.repeat(length), set: { 'X-Hub-Signature-256': undefined } })

function setUp() {
  const { log, lines } = recordingLog()
  const onRefused = createRefusals({ secrets: SECRETS, scheme: GITHUB.webhook, log })
  return {
    onRefused,
    said: lines,
    /** What was said since last asked. */
    lines: async () => {
      await setImmediate()
      return lines.splice(0)
    },
  }
}

describe('what is said of refused deliveries', () => {
  afterEach(() => void vi.useRealTimers())

  it('is one line with the reason, after the request is done with', async () => {
    const { onRefused, said, lines } = setUp()
    onRefused(other)
    expect(said).toEqual([])
    expect(await lines()).toEqual([OTHER])
  })

  it('is two lines a second, and how many more there were', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    const { onRefused, lines } = setUp()
    for (let i = 0; i < 50; i++) onRefused(other)
    expect(await lines()).toEqual([OTHER, OTHER])
    vi.advanceTimersByTime(999)
    onRefused(other)
    expect(await lines()).toEqual([])
    vi.advanceTimersByTime(1)
    expect(await lines()).toEqual(['warn another 49 deliveries were refused'])
    onRefused(other)
    vi.advanceTimersByTime(5000)
    expect(await lines()).toEqual([OTHER])
  })

  it('looks into no more than 256 KiB', async () => {
    const { onRefused, lines } = setUp()
    onRefused(large(LIMIT))
    onRefused(large(LIMIT + 1))
    expect(await lines()).toEqual([NONE, LARGE])
  })
})
