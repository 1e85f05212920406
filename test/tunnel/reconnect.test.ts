import { expect, it } from 'vitest'
import { type ConnectionEnd, createReconnect } from '../../src/tunnel/reconnect.js'

const FAILED: ConnectionEnd = { reason: '', opened: false, steady: false }
const SHORT: ConnectionEnd = { reason: '', opened: true, steady: false }
const STEADY: ConnectionEnd = { reason: '', opened: true, steady: true }

/** The wait after each end, where a failure number n costs n × 1,000 ms. */
function waits(...ends: readonly ConnectionEnd[]): number[] {
  const reconnect = createReconnect((failures) => failures * 1000)
  return ends.map((end) => reconnect(end).ms)
}

it('reconnects at once after a connection that was open, and then backs off until one is stable', () => {
  expect(waits(STEADY, FAILED, FAILED, STEADY, FAILED)).toEqual([0, 1000, 2000, 0, 1000])
  expect(waits(SHORT, SHORT, SHORT, STEADY, SHORT)).toEqual([0, 1000, 2000, 0, 1000])
})

it('backs off from the start if the first attempt fails', () => {
  expect(waits(FAILED, FAILED, SHORT, FAILED)).toEqual([1000, 2000, 3000, 4000])
})

it('waits as long as the server asks, up to 15 minutes', () => {
  expect(
    waits({ ...FAILED, retryAfter: 30_000 }, { ...FAILED, retryAfter: 500 }, { ...FAILED, retryAfter: 1e9 }),
  ).toEqual([30_000, 2000, 900_000])
})
