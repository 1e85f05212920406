import { describe, expect, it } from 'vitest'
import { counted, exactTime, formatMs, formatSize, saidTime } from '../../src/inspector/view/format.js'

// Tests run in India's time zone, 5 h 30 min ahead of UTC.
const NOW = Date.parse('2026-11-23T12:00:00+05:30')
const at = (text: string): number => Date.parse(`${text}+05:30`)

describe('how the inspector says', () => {
  it('times', () => {
    const said = ['2026-11-23T09:05:07', '2026-11-22T23:59:59', '2026-11-21T00:00:00', '2025-11-23T12:00:00']
    expect(said.map((text) => saidTime(at(text), NOW))).toEqual([
      '09:05:07',
      'yesterday 23:59',
      '21 Nov 00:00',
      '23 Nov 2025',
    ])
    expect(exactTime(at('2026-11-23T09:05:07.089'))).toBe('2026-11-23 09:05:07.089 +05:30')
  })

  it('sizes', () => {
    expect([0, 1023, 1024, 7270, 1_023_900, 1_048_576, 26_214_400].map(formatSize)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '7.1 KiB',
      '1000 KiB',
      '1.0 MiB',
      '25.0 MiB',
    ])
  })

  it('durations', () => {
    expect([0.4, 38, 999, 1234, 90_000, 7_200_000, 259_200_000].map(formatMs)).toEqual([
      '0 ms',
      '38 ms',
      '999 ms',
      '1.2 s',
      '2 min',
      '2 h',
      '3 days',
    ])
  })

  it('numbers of things', () => {
    expect([counted(1, 'delivery', 'deliveries'), counted(12_000, 'delivery', 'deliveries')]).toEqual([
      '1 delivery',
      '12,000 deliveries',
    ])
  })
})
