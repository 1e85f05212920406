import { describe, expect, it } from 'vitest'
import { roughly, shownTime, spokenTime } from '../../../src/old/output/time.js'

/** A Monday, in the time zone of the tests, which has no summer time. */
const NOW = Date.parse('2026-11-23T14:03:22')
const at = (local: string): number => Date.parse(local)

describe('a time for a person', () => {
  it.each([
    ['2026-11-23T14:03:22', '14:03:22 today, 0 s ago', '14:03:22'],
    ['2026-11-23T14:01:20', '14:01:20 today, 2 min ago', '14:01:20'],
    ['2026-11-23T00:00:00', '00:00:00 today, 14 h ago', '00:00:00'],
    ['2026-11-22T23:59:59', 'Sun 22 Nov 23:59:59, 14 h ago', 'Sun 23:59'],
    ['2026-11-18T12:00:00', 'Wed 18 Nov 12:00:00, 5 days ago', 'Wed 12:00'],
    ['2026-01-31T12:00:00', '31 Jan 2026 12:00:00, 296 days ago', '31 Jan 12:00'],
    ['2025-01-31T12:00:00', '31 Jan 2025 12:00:00, 661 days ago', '31 Jan 2025'],
    ['2026-11-23T14:05:00', '14:05:00 today, in 98 s', '14:05:00'],
    ['2026-12-23T14:03:22', '23 Dec 2026 14:03:22, in 30 days', '23 Dec 14:03'],
  ])('%s is %s, in a column %s', (local, sentence, column) => {
    expect(shownTime(at(local), true, NOW)).toBe(sentence)
    expect(spokenTime(at(local), NOW)).toBe(column)
    expect(shownTime(at(local), false, NOW)).toBe(local.replace('T', ' '))
  })

  it.each([
    [119_999, '119 s'],
    [120_000, '2 min'],
    [7_199_999, '119 min'],
    [7_200_000, '2 h'],
    [172_799_999, '47 h'],
    [172_800_000, '2 days'],
  ])('%d ms are roughly %s', (ms, text) => {
    expect(roughly(ms)).toBe(text)
  })
})
