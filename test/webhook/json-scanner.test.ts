import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonScanner, type Outline, type Wanted } from '../../src/webhook/json-scanner.js'

const WANTED: readonly Wanted[] = [
  { name: 'action' },
  { name: 'a' },
  { name: 'issue', members: [{ name: 'a' }, { name: 'user', members: [{ name: 'action' }] }] },
]

const scan = (text: string, wanted = WANTED): Outline => new JsonScanner(Buffer.from(text)).scan(wanted)

/** What is wanted of a value that JSON.parse gave. */
function outline(value: unknown, wanted: readonly Wanted[]): Outline {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  const members = new Map(Object.entries(value))
  const there = wanted.filter(({ name }) => members.has(name))
  return Object.fromEntries(
    there.map(({ name, members: inner }) => {
      const member = members.get(name)
      return [name, inner ? outline(member, inner) : isContainer(member) ? undefined : member]
    }),
  )
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

describe('JsonScanner', () => {
  it('gives what is wanted', () => {
    const text =
      '{"b":[{"a":1}],"action":"opened","issue":{"b":{"a":2},"a":3,"user":{"action":null}},"a":true}'
    expect(scan(text)).toEqual({ action: 'opened', a: true, issue: { a: 3, user: { action: null } } })
  })

  it.each([
    ['a value that is a container', '{"a":{"a":1},"action":[1]}', {}],
    ['no object where members are wanted', '{"issue":"a"}', { issue: {} }],
    ['a list of objects', '[{"a":1}]', {}],
    ['text', '"a"', {}],
    ['the last of two', '{"a":1,"a":2,"issue":{"a":1},"issue":{"user":{}}}', { a: 2, issue: { user: {} } }],
    ['a name that is spelled otherwise', '{"\\u0061":1,"\\u0061ction":"x","\\\\a":2}', { a: 1, action: 'x' }],
    ['escapes and other letters', '{"action":"\\u00e9é\\n😀\\ud800"}', { action: 'éé\n😀\ud800' }],
    ['white space', ' {\n"a"\t:\r1 , "action" : 2 } ', { a: 1, action: 2 }],
    ['names that only begin alike', '{"actions":1,"actio":2,"acti\u0000n":3}'.replace('\0', '\\u0000'), {}],
  ])('gives of %s what JSON.parse would', (_, text, expected) => {
    expect(scan(text)).toEqual(expected)
    expect(outline(JSON.parse(text), WANTED)).toEqual(expected)
  })

  it('gives nothing where nothing is wanted', () => {
    expect(scan('{"a":1}', [])).toEqual({})
  })

  it('finds the end of a string wherever it is in a word', () => {
    for (const length of Array(20).keys())
      for (const start of Array(8).keys()) {
        const text = JSON.stringify({ a: 'x'.repeat(length), action: 'é"\\'.repeat(length) })
        const bytes = Buffer.concat([Buffer.alloc(start), Buffer.from(text)]).subarray(start)
        expect(new JsonScanner(bytes).scan(WANTED)).toEqual(JSON.parse(text))
      }
  })

  it('takes of a single character in a string those that JSON.parse takes', () => {
    const around = Array.from({ length: 256 }, (_, code) => `{"a":"xx${String.fromCharCode(code)}xxx"}`)
    const taken = (read: (text: string) => unknown): string[] =>
      around.filter((text) => {
        try {
          read(text)
          return true
        } catch {
          return false
        }
      })
    expect(taken(scan)).toEqual(taken(JSON.parse))
    expect(taken(scan)).toHaveLength(256 - 32 - 2)
  })

  it('gives of every object what JSON.parse gives, however it is spelled', () => {
    const names = fc.constantFrom('a', 'action', 'issue', 'user', 'b', '__proto__', '\\u0061', '\\u0061ction')
    const { json } = fc.letrec<{ json: string }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom('1', '-1.5e3', 'true', 'null', '""'),
        fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
        fc.array(tie('json'), { maxLength: 3 }).map((items) => `[${items.join(' , ')}]`),
        fc
          .array(fc.tuple(names, tie('json')), { maxLength: 6 })
          .map((members) => `{${members.map(([name, value]) => `"${name}" : ${value}`).join('\n,')}}`),
      ),
    }))
    fc.assert(
      fc.property(json, (text) => {
        expect(scan(text)).toEqual(outline(JSON.parse(text), WANTED))
      }),
      { numRuns: 2000 },
    )
  })
})
