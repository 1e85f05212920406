import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseWhere } from '../../src/cli/commands/wait.js'
import { failure } from './cli-shell.js'

const PAYLOAD = {
  action: 'opened',
  number: 7,
  draft: false,
  none: null,
  sha: '1234567',
  exponent: '12e4567',
  text: 'say "hi"\n/ship it',
  labels: [{ name: 'bug' }, { name: 'ci: slow' }],
  a: { b: { c: 'deep' } },
}

const holds = (expression: string, payload: unknown = PAYLOAD): boolean => parseWhere(expression)(payload)

it.each([
  ' action == opened ',
  "action=='opened'",
  'number==7.0',
  'none==null',
  'sha==1234567',
  'exponent==12e4567',
  'labels[1].name==ci: slow',
  'action!=closed',
  'none!=0',
  'a!=null',
  'number!="7"',
  String.raw`text ~ "^say \"hi\"\n/ship\b"`,
  "text ~ '/ship it$'",
  'number ~ ^7$',
  'draft ~ al',
])('%s', (expression) => {
  expect(holds(expression)).toBe(true)
})

it.each([
  'action==Opened',
  'action==open',
  'number=="7"',
  'labels==null',
  'labels[2].name!=null',
  'labels.length==2',
  'labels.0.name==bug',
  'a[0]!=null',
  'action.length==6',
  'constructor!=null',
  '__proto__!=null',
  'a=={}',
  'a~.',
  'missing~.',
  'action~^pen',
])('not %s', (expression) => {
  expect(holds(expression)).toBe(false)
})

it('takes a payload of any type', () => {
  for (const payload of [1, 'x', null, undefined, [], [null]]) expect(holds('a.b==c', payload)).toBe(false)
  expect(holds('[0].a==1', [{ a: 1 }])).toBe(true)
  expect(holds('a==1', Object.create({ a: 1 }))).toBe(false)
})

it.each([
  ['', 'a name or [0] at the end'],
  ['==x', 'a name or [0] at character 1, before ==x'],
  ['a', '==, != or ~ at the end'],
  ['a b==c', '==, != or ~ at character 2, before  b==c'],
  ['a..b==c', 'a name at character 3, before .b==c'],
  ['a[0==c', 'a number and ] at character 3, before 0==c'],
  ['a==', 'a value at the end'],
  ['a~ ', 'a pattern at the end'],
  ['a=="b', '" at the end at the end'],
  ['a=="b" c', '" at the end at the end'],
  ['a=="b"c"', 'one JSON string at character 4, before "b"c"'],
  [String.raw`a=="\x"`, String.raw`one JSON string at character 4, before "\x"`],
  ['a~(', 'a regular expression (Unterminated group) at character 3, before ('],
  [String.raw`a~\-`, String.raw`a regular expression (Invalid escape) at character 3, before \-`],
])('%j: expected %s', (expression, place) => {
  const message = `--where ${expression.trim()}: expected ${place}`
  expect(failure(() => parseWhere(expression))).toEqual({ kind: 'usage', message })
})

it('is no longer than 1,000 characters', () => {
  const message = '--where: is longer than 1000 characters'
  expect(failure(() => parseWhere(`a==${'x'.repeat(1000)}`))).toEqual({ kind: 'usage', message })
})

const name = fc.stringMatching(/^[A-Za-z_$][\w$-]{0,9}$/)
const path = fc.array(fc.oneof(name, fc.nat(20)), { minLength: 1, maxLength: 6 })
const text = fc.string({ unit: 'binary' })
const scalar = fc.oneof(text, fc.integer(), fc.double({ noNaN: true }), fc.boolean())

it('finds exactly what lies at its path, whatever that is', () => {
  fc.assert(
    fc.property(path, scalar, scalar, (steps, value, other) => {
      const nested = steps.reduceRight<unknown>(
        (inner, step) => (typeof step === 'string' ? { [step]: inner } : [...Array(step), inner]),
        value,
      )
      const written = steps
        .map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i > 0 ? '.' : ''}${step}`))
        .join('')
      const payload: unknown = JSON.parse(JSON.stringify(nested))
      for (const literal of [JSON.stringify(value), JSON.stringify(other)]) {
        const same = JSON.parse(JSON.stringify(value)) === JSON.parse(literal)
        expect(holds(`${written}==${literal}`, payload)).toBe(same)
        expect(holds(`${written} != ${literal}`, payload)).toBe(!same)
      }
      expect(holds(`${written}.further==null`, payload)).toBe(true)
    }),
  )
})

it('reads, or says what is wrong with, any text', () => {
  const unit = fc.constantFrom(...'ab.[]0=!~"\'\\ ^($'.split(''))
  fc.assert(
    fc.property(fc.string({ maxLength: 60, unit }), (expression) => {
      expect(attempted(expression)).toMatch(/^(?:true|false|usage: --where .*: expected .*)$/s)
    }),
  )
})

function attempted(expression: string): string {
  try {
    return String(holds(expression))
  } catch (error) {
    const { kind, message } = Object(error)
    return `${kind}: ${message}`
  }
}
