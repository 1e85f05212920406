import { anything, assert, property } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { isPositive, isText, shape } from '../../src/json/shape.js'

const parse = shape<{ name: string; pid: number }>({ name: isText, pid: isPositive })
const schema = z.object({ name: z.string(), pid: z.int().positive() })

describe('a shape', () => {
  it('takes what zod takes', () => {
    assert(
      property(anything(), anything(), (name, pid) => {
        expect(parse({ name, pid })).toEqual(schema.safeParse({ name, pid }).data)
      }),
    )
  })
})
