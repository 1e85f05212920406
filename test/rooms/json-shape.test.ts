import { anything, array, assert, constantFrom, date, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { isInstant, isPositive, isText, shape } from '../../src/json/shape.js'

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

describe('an instant', () => {
  const takes = (text: unknown): void => {
    expect([text, isInstant(text)]).toEqual([text, z.iso.datetime().safeParse(text).success])
  }

  it('is what a date gives', () => {
    const dates = date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z') })
    assert(property(dates, (each) => isInstant(each.toISOString())))
  })

  it.each([
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00:00.123456Z',
    '2026-02-29T00:00:00Z',
    '2024-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+01:00',
    '2026-01-01',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z\n',
    '',
    7,
    null,
  ])('is what zod takes for one: %j', (text) => {
    expect(isInstant(text)).toBe(z.iso.datetime().safeParse(text).success)
  })

  it('is what zod takes for one, whatever the text', () => {
    assert(property(string(), takes))
    const pieces = constantFrom('2026', '-', '01', '31', '02', 'T', ':', '24', '59', '60', '.', '000', 'Z')
    assert(property(array(pieces, { maxLength: 14 }), (parts) => takes(parts.join(''))))
  })
})
