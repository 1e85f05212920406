import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bracketed, parseCondition, readBracketed, DeliveryView } from '../../src/dispatch/where.js'
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

const parse = (expression: string) => parseCondition(expression, '--where')

/** A delivery with this payload, or with another body. */
function subject(
  payload: unknown,
  { body = JSON.stringify(payload) ?? '', repo = 'Octo/Demo' } = {},
): DeliveryView {
  return new DeliveryView({ body: Buffer.from(body), repo, provider: 'github' })
}

const holds = (expression: string, payload: unknown = PAYLOAD): boolean =>
  parse(expression).holds(subject(payload))

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
  ['a~(', 'a regular expression (missing closing ): `(`) at character 3, before ('],
  ['a~[z-a]', 'a regular expression (invalid character class range: `z-a`) at character 3, before [z-a]'],
  [
    'a~x(?!y)',
    'a regular expression (invalid or unsupported Perl syntax: `(?!`) at character 3, before x(?!y)',
  ],
  [
    'a~(x{1,90}){1,9}',
    'a regular expression (it is too large: repeat less often) at character 3, before (x{1,90}){1,9}',
  ],
])('%j: expected %s', (expression, place) => {
  const message = `--where ${expression.trim()}: expected ${place}`
  expect(failure(() => parse(expression))).toEqual({ kind: 'usage', message })
})

/** Patterns that take exponential, cubic or quadratic time where an engine goes back, and the largest that relay takes. */
const COSTLY = [
  '(a+)+$',
  '(a|a)*$',
  '(a|aa)+$',
  '(.*a){20}$',
  'a*a*a*a*b',
  '(a?){150}a{150}$',
  '[ab]*a[ab]{900}c',
]

it('takes no longer for a pattern than the length of the value allows', () => {
  const repeated = fc.constantFrom('a', 'ab', 'aab', 'b', ' ')
  const pattern = fc.oneof(
    fc.constantFrom(...COSTLY),
    fc
      .tuple(fc.constantFrom(...COSTLY), fc.constantFrom('+', '*', '{1,9}'))
      .map(([inner, times]) => `(${inner})${times}x$`),
  )
  fc.assert(
    fc.property(pattern, repeated, fc.nat(300_000), (source, unit, length) => {
      const text = unit.repeat(length / unit.length)
      const began = performance.now()
      attempted(`a~${source}`, { a: `${text}c!` })
      expect(performance.now() - began).toBeLessThan(5000)
    }),
    { numRuns: 60 },
  )
}, 60_000)

it('tests a pattern on the first 65,536 characters of a value', () => {
  const a = `${'x'.repeat(65_535)}yz`
  expect([holds('a~y$', { a }), holds('a~z', { a })]).toEqual([true, false])
})

it('is no longer than 1,000 characters', () => {
  const message = '--where: is longer than 1000 characters'
  expect(failure(() => parse(`a==${'x'.repeat(1000)}`))).toEqual({ kind: 'usage', message })
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

function attempted(expression: string, payload: unknown = PAYLOAD): string {
  try {
    return String(holds(expression, payload))
  } catch (error) {
    const { kind, message } = Object(error)
    return `${kind}: ${message}`
  }
}

it.each([
  ['@repo==octo/demo', true],
  ['@repo!=octo/demo', false],
  ['@repo~^OCTO/', true],
  ['@repo==octo/other', false],
  ['@source==github', true],
  ['@source==stripe', false],
  ['repo==octo/demo', false],
])('%s of a delivery of octo/demo: %s', (expression, expected) => {
  expect(holds(expression)).toBe(expected)
})

it('reads the fields of a form, and the payload that one holds', () => {
  const of = (body: string, expression: string) => parse(expression).holds(subject(undefined, { body }))
  expect(of('command=%2Fdeploy&text=now', 'command==/deploy')).toBe(true)
  expect(of('payload=%7B%22ref%22%3A%22main%22%7D', 'ref==main')).toBe(true)
  expect(of('no JSON', 'ref!=main')).toBe(true)
})

it('says what a delivery has there', () => {
  const says = (expression: string) => parse(expression).describe(subject(PAYLOAD))
  expect([says('action==x'), says('labels==x'), says('missing.a==x'), says('@repo==x')]).toEqual([
    'action is opened',
    'labels is a list',
    'missing.a is null',
    '@repo is Octo/Demo',
  ])
  expect(parse('a==x').describe(subject({ a: 'y'.repeat(300) }))).toBe(`a is ${'y'.repeat(100)}…`)
})

describe('conditions in brackets', () => {
  it.each([
    '',
    '[a==b]',
    '[a==b][labels[0].name~^[a-c]$]',
    String.raw`[a=="]"][b==']['][c=="\"]"]`,
    `[title==don't stop]`,
  ])('%s: are read as they were written, up to their end', (text) => {
    const { conditions, end } = readBracketed(`push${text}=x[1]`, 4)
    expect([bracketed(conditions), end]).toEqual([text, 4 + text.length])
  })

  it.each(['[a==b', '[a', '['])('%s has no end', (text) => {
    const message = `The condition ${text} has no ] at its end`
    expect(failure(() => readBracketed(`push${text}`, 4))).toEqual({ kind: 'usage', message })
  })

  it('hold any condition whose value is in quotes', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 3 }), fc.constantFrom('==', '!='), (values, operator) => {
        const written = values.map((value) => `[a${operator}${JSON.stringify(value)}]`).join('')
        const { conditions, end } = readBracketed(`${written}=x`, 0)
        expect([bracketed(conditions), end]).toEqual([written, written.length])
        for (const [i, { holds: isSo }] of conditions.entries()) {
          const payload: unknown = JSON.parse(JSON.stringify({ a: values[i] }))
          expect(isSo(subject(payload))).toBe(operator === '==')
        }
      }),
    )
  })
})
