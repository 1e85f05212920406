import { describe, expect, it } from 'vitest'
import { nearbyProbeDelay, probeDelay } from '../../src/base/wait.js'

const least = (): number => 0
const middle = (): number => 0.5
const most = (): number => 1

describe('probeDelay', () => {
  it('doubles from a second to a minute, and stays there', () => {
    const delays = Array.from({ length: 9 }, (_, i) => probeDelay(i + 1, middle))
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
    expect(probeDelay(5000, middle)).toBe(60_000)
  })

  it('varies by a fifth', () => {
    expect([probeDelay(1, least), probeDelay(1, most)]).toEqual([800, 1200])
    expect([probeDelay(20, least), probeDelay(20, most)]).toEqual([48_000, 72_000])
  })
})

describe('nearbyProbeDelay', () => {
  it('is a second in the first minute, then five, and varies by a fifth', () => {
    const delays = [0, 59_999, 60_000, 86_400_000].map((downFor) => nearbyProbeDelay(downFor, middle))
    expect(delays).toEqual([1000, 1000, 5000, 5000])
    expect([nearbyProbeDelay(0, least), nearbyProbeDelay(60_000, most)]).toEqual([800, 6000])
  })
})
