import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { decodeAttempt, encodeAttempt } from '../../src/journal/attempt-row.js'
import type { Attempt } from '../../src/journal/hand-on.js'
import { attempt } from './rig.js'

describe('a row of an attempt', () => {
  it('is the file format', () => {
    expect(
      Buffer.from(encodeAttempt(attempt('*=http://a/', { answer: Buffer.from('{\n}') }))).toString(),
    ).toBe(
      '{"v":1,"at":1700000000005,"target":"*=http://a/","outcome":"succeeded","status":200,"ms":38,"count":1,"error":null}\n{\n}',
    )
  })

  it('gives back what it was given, byte for byte', () => {
    const any: fc.Arbitrary<Attempt> = fc.record({
      at: fc.nat(),
      target: fc.string(),
      outcome: fc.constantFrom('succeeded', 'retry', 'refused', 'unreachable', 'timed out', 'killed'),
      status: fc.option(fc.nat()),
      ms: fc.nat(),
      answer: fc.uint8Array({ maxLength: 4096 }),
      error: fc.option(fc.string({ maxLength: 1024 })),
      count: fc.nat(),
    })
    fc.assert(
      fc.property(any, (given) => {
        expect(decodeAttempt(encodeAttempt(given))).toEqual(given)
      }),
    )
  })

  it('keeps the start of a long answer and of a long error', () => {
    const answer = Uint8Array.from({ length: 5000 }, (_, i) => i)
    expect(decodeAttempt(encodeAttempt(attempt('a', { answer, error: 'x'.repeat(2000) })))).toEqual(
      attempt('a', { answer: answer.subarray(0, 4096), error: 'x'.repeat(1024) }),
    )
  })

  it('of a later format is refused by name', () => {
    expect(() => decodeAttempt(Buffer.from('{"v":2}\n'))).toThrow(
      new RelayError('storage', 'An attempt was written by a newer version of relay'),
    )
  })
})
