import { describe, expect, it } from 'vitest'
import { attemptCell, cellsLine, type TargetCell, waitingCell } from '../../../src/old/output/target-cell.js'
import { lineWidth } from '../../../src/old/output/line.js'
import { attempt, failed, NOW, succeeded, waiting } from '../../journal/rig.js'
import { plain } from '../rig.js'

const HTTP = '*=http://localhost:3000'
const EXEC = 'push=exec:./deploy.sh'

describe('a target on the line of a delivery', () => {
  it.each<[string, Parameters<typeof attemptCell>]>([
    ['app ✓ 202 38ms', ['app', succeeded, attempt(HTTP, { status: 202 })]],
    ['app ✓ 1.2s', ['app', succeeded, attempt(EXEC, { status: 0, ms: 1234 })]],
    [
      'app ↻ 500 again in 2s',
      ['app', waiting, attempt(HTTP, { outcome: 'retry', status: 500 }), NOW + 5 + 38 + 1900],
    ],
    [
      'app ✗ 500 38ms, five times',
      [
        'app',
        { ...failed, reason: 'answered 500, five times' },
        attempt(HTTP, { outcome: 'retry', status: 500 }),
      ],
    ],
    [
      'app ✗ 404 38ms',
      ['app', { ...failed, reason: 'answered 404' }, attempt(HTTP, { outcome: 'refused', status: 404 })],
    ],
    [
      'app ✗ exit 3 38ms',
      ['app', { ...failed, reason: 'exit code 3' }, attempt(EXEC, { outcome: 'refused', status: 3 })],
    ],
    [
      String.raw`app ✗ refused 38ms, \u{1b}`,
      ['app', { ...failed, reason: '\u001b' }, attempt(HTTP, { outcome: 'refused', status: null })],
    ],
    ['app ◦ down', ['app', waiting, attempt(HTTP, { outcome: 'unreachable', status: null })]],
    ['app ◦ timed out', ['app', waiting, attempt(HTTP, { outcome: 'timed out', status: null })]],
    ['app ◦ waiting', ['app', waiting, undefined]],
    ['app ✗ older than 24 h', ['app', { ...failed, reason: 'older than 24 h' }, undefined]],
  ])('%s', (text, given) => {
    expect(plain(cellsLine([attemptCell(...given)], Infinity))).toBe(text)
  })

  const CELLS: readonly TargetCell[] = [
    attemptCell('app', succeeded, attempt(HTTP)),
    attemptCell('localhost:3000', failed, attempt(HTTP, { outcome: 'refused', status: 404 })),
    waitingCell('slow'),
  ]

  it.each([
    [90, 'app ✓ 200 38ms  localhost:3000 ✗ 404 38ms, answered 500 five times  slow ◦ waiting'],
    [60, 'app ✓ 200  localhost:3000 ✗ 404  slow ◦ waiting'],
    [40, 'app ✓ 200  :3000 ✗ 404  slow ◦ waiting'],
    [30, 'app ✓  :3000 ✗ 404  slow ◦'],
    [24, 'app ✓  :3000 ✗  slow ◦'],
    [20, '✗ :3000  ◦ slow  1 ✓'],
    [18, '✗ :3000  1 ◦  1 ✓'],
  ])('is as short as %d columns need', (width, text) => {
    const line = cellsLine(CELLS, width)
    expect({ text: plain(line), fits: lineWidth(line) <= width }).toEqual({ text, fits: true })
  })
})
