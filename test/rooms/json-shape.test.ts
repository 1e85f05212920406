import { anything, assert, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { isPositive, isText, shape } from '../../src/json/shape.js'

const parse = shape<{ name: string; pid: number }>({ name: isText, pid: isPositive })
const schema = z.object({ name: z.string(), pid: z.int().positive() })

describe('a shape', () => {
  it('gives the fields that it names, and no others', () => {
    expect(parse({ name: 'ada', pid: 1, more: true })).toEqual({ name: 'ada', pid: 1 })
  })

  it.each([
    undefined,
    null,
    'text',
    [],
    {},
    { name: 'ada' },
    { name: 1, pid: 1 },
    { name: 'ada', pid: 0 },
    { name: 'ada', pid: 1.5 },
    { name: 'ada', pid: '1' },
  ])('takes %j for no row', (value) => {
    expect(parse(value)).toBeUndefined()
  })

  it('takes what zod takes', () => {
    assert(
      property(anything(), anything(), (name, pid) => {
        expect(parse({ name, pid })).toEqual(schema.safeParse({ name, pid }).data)
      }),
    )
  })
})
