import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formPayload } from '../../src/base/bytes.js'

const payload = (body: string): string | undefined => {
  const decoded = formPayload(Buffer.from(body, 'latin1'))
  return decoded && Buffer.from(decoded).toString('utf8')
}

describe('formPayload', () => {
  it.each([
    ['payload=%7B%22a%22%3A1%7D', '{"a":1}'],
    ['payload={"a":1}', '{"a":1}'],
    ['payload=a+b%2Bc%20d', 'a b+c d'],
    ['payload=%c3%A9', 'é'],
    ['payload=', ''],
    ['payload', ''],
    ['payload=a=b', 'a=b'],
    ['x=1&payload=a&y', 'a'],
    ['&&payload=a&', 'a'],
    ['pay%6Coad=a', 'a'],
    ['bad=%zz&payload=a', 'a'],
  ])('reads %s', (body, text) => {
    expect(payload(body)).toBe(text)
  })

  it.each([
    ['nothing', ''],
    ['no payload', 'a=1&b=2'],
    ['a payload of other case', 'Payload=1'],
    ['two payloads', 'payload=1&payload=1'],
    ['two payloads, one in disguise', 'payload=1&%70ayload=2'],
    ['a cut escape', 'payload=%4'],
    ['a bare percent', 'payload=100%'],
    ['an escape that is none', 'payload=%g1'],
    ['an escape half of which is none', 'payload=%1g'],
    ['a sign in an escape', 'payload=%+1'],
    ['more than 100 fields', `${'&'.repeat(100)}payload=1`],
  ])('refuses %s', (_, body) => {
    expect(payload(body)).toBeUndefined()
  })

  it('reads the last of 100 fields', () => {
    expect(payload(`${'a&'.repeat(99)}payload=1`)).toBe('1')
  })

  it('is quick with a megabyte of separators', () => {
    const start = performance.now()
    expect(payload('&'.repeat(1_048_576))).toBeUndefined()
    expect(performance.now() - start).toBeLessThan(100)
  })

  it('gives back what URLSearchParams encoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const wellFormed = Buffer.from(text).toString()
        expect(payload(new URLSearchParams({ a: '1', payload: wellFormed }).toString())).toBe(wellFormed)
      }),
    )
  })
})

it('reads a payload of any length', () => {
  const text = payload(`payload=${'a%20+%C3%A9'.repeat(300_000)}`)
  expect(text === 'a  é'.repeat(300_000)).toBe(true)
})
