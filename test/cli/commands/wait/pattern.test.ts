import { describe, expect, it } from 'vitest'
import { createPattern } from '../../../../src/old/commands/wait/pattern.js'
import { failure } from '../../../helpers/failure.js'

/** A pattern and a text that it takes for ever to refuse. */
const SLOW = '^(a+)+$'
const TEXT = `${'a'.repeat(64)}b`

describe('a pattern', () => {
  it('is ended when it would take for ever, and works again after that', () => {
    const matches = createPattern(SLOW)
    expect(failure(() => matches(TEXT))).toEqual({
      kind: 'usage',
      message: 'The pattern "^(a+)+$" takes too long. Simplify it',
    })
    expect([matches('aaa'), matches('b')]).toEqual([true, false])
  })

  it('has another try while the machine gave its time to others', () => {
    // Before and after each of three tries: the third one had the processor for long enough.
    const used = [0, 20, 20, 60, 60, 600]
    const matches = createPattern(SLOW, () => used.shift() ?? Number.NaN)
    expect(failure(() => matches(TEXT))).toMatchObject({ kind: 'usage' })
    expect(used).toEqual([])
  })
})
