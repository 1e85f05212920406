import { describe, expect, it } from 'vitest'
import type { Timeline } from '../../../src/inspector/api.js'
import {
  minuteAt,
  moveCursor,
  selectedSpan,
  spanOf,
  spanQuery,
} from '../../../src/inspector/browser/model/span.js'
import { describeMinutes } from '../../../src/inspector/view/timeline.js'

const START = Date.parse('2026-11-23T08:00Z')
const timeline: Timeline = {
  minutes: Array.from({ length: 60 }, (_, i) => ({
    at: START + i * 60_000,
    received: i,
    failed: i === 5 ? 2 : 0,
    refused: i === 6 ? 1 : 0,
  })),
}

describe('the span of the strip', () => {
  it('is moved and extended by keys, within the hour', () => {
    const cursor = { at: 30, anchor: 30 }
    expect(moveCursor(cursor, 'ArrowLeft', false, 60)).toEqual({ at: 29, anchor: 29 })
    expect(moveCursor(cursor, 'ArrowLeft', true, 60)).toEqual({ at: 29, anchor: 30 })
    expect(moveCursor(cursor, 'PageDown', true, 60)).toEqual({ at: 40, anchor: 30 })
    expect(moveCursor(cursor, 'Home', true, 60)).toEqual({ at: 0, anchor: 30 })
    expect(moveCursor(cursor, 'End', false, 60)).toEqual({ at: 59, anchor: 59 })
    expect(moveCursor({ at: 59, anchor: 59 }, 'ArrowRight', false, 60)).toEqual({ at: 59, anchor: 59 })
    expect(moveCursor(cursor, 'Enter', false, 60)).toBeUndefined()
  })

  it('is dragged in either direction', () => {
    expect(spanOf({ at: 3, anchor: 9 })).toEqual({ from: 3, to: 9 })
    expect([-0.1, 0, 0.5, 0.999, 1, 2].map((fraction) => minuteAt(fraction, 60))).toEqual([
      0, 0, 30, 59, 59, 59,
    ])
  })

  it('stands in the address as whole minutes, and is read back from it', () => {
    const query = spanQuery(timeline, { from: 5, to: 6 })
    expect(query).toEqual({ since: '2026-11-23T08:05Z', until: '2026-11-23T08:07Z' })
    expect(selectedSpan(timeline, query)).toEqual({ from: 5, to: 6 })
    for (let from = 0; from < 60; from++)
      expect(selectedSpan(timeline, spanQuery(timeline, { from, to: 59 }))).toEqual({ from, to: 59 })
  })

  it('is none where the filters say no span, or one outside the hour', () => {
    expect(selectedSpan(timeline, { since: '1h' })).toBeUndefined()
    expect(selectedSpan(timeline, { since: '2026-11-23T09:00Z', until: '2026-11-23T09:05Z' })).toBeUndefined()
    expect(selectedSpan(timeline, { since: '2026-11-23T07:00Z', until: '2026-11-23T07:30Z' })).toBeUndefined()
  })

  it('is summed up in words', () => {
    expect(describeMinutes(timeline)).toBe('Last hour: 1,770 received, 2 failed, 1 refused')
    // Tests run in India's time zone.
    expect(describeMinutes(timeline, { from: 5, to: 6 })).toBe(
      '13:35 to 13:37: 11 received, 2 failed, 1 refused',
    )
    expect(describeMinutes(timeline, { from: 5, to: 5 })).toBe('13:35: 5 received, 2 failed')
  })
})
