import { expect, it } from 'vitest'
import { Tally } from '../../src/replay/tally.js'

it('returns percentiles to a thousandth, and the number of each answer', () => {
  const tally = new Tally()
  for (let ms = 1; ms <= 1000; ms++) tally.add(ms, ms % 10 === 0 ? '500' : '200', ms % 10 !== 0)
  const { requests, failed, latency, answers } = tally.totals
  expect({ requests, failed, answers }).toEqual({
    requests: 1000,
    failed: 100,
    answers: { 200: 900, 500: 100 },
  })
  const { p50, p90, p99, max } = latency
  const off = [p50 - 500, p90 - 900, p99 - 990, max - 1000].map(Math.abs)
  expect(off.filter((ms) => ms > 1)).toEqual([])
})

it('keeps a bounded number of different answers', () => {
  const tally = new Tally()
  for (let i = 0; i < 1000; i++) tally.add(1, `reason ${i}`, false)
  const { answers } = tally.totals
  expect([Object.keys(answers).length, answers['other']]).toEqual([51, 950])
})
