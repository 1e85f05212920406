import { describe, expect, it } from 'vitest'
import { isMeasured, notMeasured, row } from '../../bench/rig.js'

describe('what a benchmark gives', () => {
  const good = row('deliveries/s', [3, 1, 2])

  it('is measured where every line has a figure', () => {
    expect(isMeasured([good, row('frames in the slowest second', [0], [60])])).toBe(true)
  })

  it.each([
    ['has no line', []],
    [
      'has a line that says why it was not measured',
      [good, notMeasured('PostgreSQL', 'it is not installed')],
    ],
    ['has a round without a figure', [good, row('s', [1, Number.NaN])]],
    ['divides by nothing', [row('fixtures/s', [Infinity])]],
    ['has none of the earlier relay', [row('s', [1], [Number.NaN])]],
  ])('is not where it %s', (_, rows) => {
    expect(isMeasured(rows)).toBe(false)
  })
})
