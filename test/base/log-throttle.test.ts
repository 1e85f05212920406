import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { excerpt, createLogThrottle } from '../../src/base/log.js'
import { recordingLog } from '../helpers/log.js'

function setUp() {
  const { log, lines } = recordingLog()
  const throttle = createLogThrottle(log)
  return {
    throttle,
    /** Has a line of the kind logged so many times. */
    trigger: (kind: string, times = 1) => {
      for (let i = 0; i < times; i++) throttle(kind, () => log.warn(`${kind} from ${i}`))
    },
    /** What was logged since last asked. */
    lines: () => lines.splice(0),
  }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

describe('lines that an outsider can trigger', () => {
  it('are one at once, and one a second with a count of the others, until a second passes without any', () => {
    const { trigger, lines } = setUp()
    trigger('answered 503', 18_000)
    expect(lines()).toEqual(['warn answered 503 from 0'])
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual(['warn answered 503 … and 17,999 more like it in the last second'])
    trigger('answered 503')
    vi.advanceTimersByTime(999)
    expect(lines()).toEqual([])
    vi.advanceTimersByTime(1)
    expect(lines()).toEqual(['warn answered 503 … and 1 more like it in the last second'])
    vi.advanceTimersByTime(5000)
    expect(lines()).toEqual([])
    trigger('answered 503')
    expect(lines()).toEqual(['warn answered 503 from 0'])
    expect(vi.getTimerCount()).toBe(1)
  })

  it('are counted by kind and by level', () => {
    const { throttle, trigger, lines } = setUp()
    throttle('a', () => {}, 'debug')
    trigger('a', 2)
    trigger('b', 3)
    expect(lines()).toEqual(['warn a from 0', 'warn b from 0'])
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual([
      'warn a … and 1 more like it in the last second',
      'warn b … and 2 more like it in the last second',
    ])
  })

  it('are bounded in memory: kinds after the 64th share a count', () => {
    const { trigger, lines } = setUp()
    for (let i = 0; i < 1000; i++) trigger(`kind ${i}`)
    expect(lines()).toHaveLength(65)
    expect(vi.getTimerCount()).toBe(65)
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual(['warn other lines … and 935 more like it in the last second'])
    trigger('kind 999')
    expect(lines()).toEqual(['warn kind 999 from 0'])
  })

  it('show no more of a kind than of anything else from outside', () => {
    const { trigger, lines } = setUp()
    trigger('k'.repeat(16_000), 2)
    lines()
    vi.advanceTimersByTime(1000)
    expect(lines()).toEqual([`warn ${'k'.repeat(199)}… … and 1 more like it in the last second`])
  })
})

describe('an excerpt', () => {
  it.each([
    ['as it is up to 200 characters', 'x'.repeat(200), 'x'.repeat(200)],
    ['199 and a dot of more', 'x'.repeat(201), `${'x'.repeat(199)}…`],
    ['no half of a character', `${'x'.repeat(198)}👩‍💻`, `${'x'.repeat(198)}…`],
  ])('is %s', (_, text, expected) => {
    expect(excerpt(text)).toBe(expected)
  })
})
