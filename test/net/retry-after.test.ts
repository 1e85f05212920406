import { describe, expect, it } from 'vitest'
import { parseRetryAfter } from '../../src/net/retry-after.js'

const NOW = Date.parse('2026-11-20T10:00:00Z')

describe('parseRetryAfter', () => {
  it.each([
    ['120', undefined, 120_000],
    ['0', undefined, 0],
    ['Fri, 20 Nov 2026 10:00:30 GMT', undefined, 30_000],
    ['Fri, 20 Nov 2026 10:00:30 GMT', 'Fri, 20 Nov 2026 10:00:10 GMT', 20_000],
    ['Fri, 20 Nov 2026 09:00:00 GMT', undefined, 0],
    ['soon', undefined, undefined],
    ['', undefined, undefined],
    ['-5', 'nonsense', undefined],
    ['1.5', undefined, undefined],
    [undefined, 'Fri, 20 Nov 2026 10:00:10 GMT', undefined],
  ])('reads %j of an answer dated %j', (text, date, ms) => {
    const headers: Record<string, string | undefined> = { 'retry-after': text, date }
    expect(parseRetryAfter((name) => headers[name], NOW)).toBe(ms)
  })
})
