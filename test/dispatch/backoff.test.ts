import { describe, expect, it } from 'vitest'
import { MAX_TRIES, retryDelay } from '../../src/dispatch/backoff.js'

const least = (): number => 0
const middle = (): number => 0.5
const most = (): number => 1

describe('retryDelay', () => {
  const all = (random: () => number): number[] =>
    Array.from({ length: MAX_TRIES - 1 }, (_, i) => retryDelay(i + 1, undefined, random))

  it('makes five attempts in about a minute', () => {
    expect(all(middle)).toEqual([1000, 4000, 15_000, 40_000])
    expect(all(least)).toEqual([800, 3200, 12_000, 32_000])
    expect(all(most)).toEqual([1200, 4800, 18_000, 48_000])
  })

  it('waits as long as the target asks, up to a minute, and never less than it would anyway', () => {
    expect(retryDelay(1, 7000, middle)).toBe(7000)
    expect(retryDelay(1, 7000, least)).toBe(7000)
    expect(retryDelay(2, 0, middle)).toBe(4000)
    expect(retryDelay(1, 3_600_000, most)).toBe(60_000)
    expect(retryDelay(1, Infinity, most)).toBe(60_000)
  })
})
