import { describe, expect, it } from 'vitest'
import { type BodyKind, editBody, parseEdit } from '../../src/replay/edit.js'

const JSON_BODY: BodyKind = { form: false, style: 'compact' }

function edited(body: string, set: string, kind = JSON_BODY): string {
  return Buffer.from(editBody(Buffer.from(body), [parseEdit(set)], kind)).toString()
}

describe('an edit', () => {
  it.each([
    ['a=1', ['a'], 1],
    ['a.b=x=y', ['a', 'b'], 'x=y'],
    ['a[0].b="1"', ['a', 0, 'b'], '1'],
    ['a=', ['a'], ''],
    ['a={"b":[null]}', ['a'], { b: [null] }],
  ])('%s is read', (text, path, value) => {
    expect(parseEdit(text)).toEqual({ path, value })
  })

  it.each(['', 'a', '=1', 'a..b=1', '.a=1', 'a[x]=1', 'a b=1', 'a[0=1'])('%j is none', (text) => {
    expect(() => parseEdit(text)).toThrow('--set: must be path=value')
  })
})

describe('an edited body', () => {
  it.each([
    ['{"a":1,"b":2}', 'a=3', '{"a":3,"b":2}'],
    ['{\n  "a": 1\n}\n', 'b.c=2', '{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}\n'],
    ['[\n\t1\n]', '0=2', '[\n\t2\n]'],
    ['{"a":[1]}', 'a[1]=2', '{"a":[1,2]}'],
    ['{"a":null}', 'a=x', '{"a":"x"}'],
    ['{}', '__proto__.a=1', '{"__proto__":{"a":1}}'],
  ])('%j, %s', (body, set, wanted) => {
    expect(edited(body, set)).toBe(wanted)
  })

  it('is a form where it was one', () => {
    const kind = { form: true, style: 'indented-go' } as const
    const body = edited('payload=%7B%22a%22%3A1%7D&x=y', 'a=<&>', kind)
    expect([...new URLSearchParams(body)]).toEqual([
      ['payload', String.raw`{"a":"\u003c\u0026\u003e"}`],
      ['x', 'y'],
    ])
  })

  it.each([
    ['not JSON', 'a=1', 'Cannot set a field: the body is not JSON'],
    ['1', 'a=1', 'Cannot set a field: payload is neither an object nor a list'],
    ['{"a":[1]}', 'a[2]=1', 'Cannot set a field: a list of 1 has no place 2'],
    ['{"a":[1]}', 'a.b=1', 'Cannot set a field: a list of 1 has no place b'],
    ['{"a":"x"}', 'a.b=1', 'Cannot set a field: a is neither an object nor a list'],
  ])('%j refuses %s', (body, set, message) => {
    expect(() => edited(body, set)).toThrow(message)
  })
})
