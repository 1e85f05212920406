import { type Fixture, fixtureBody, fixtureLines } from '../../src/replay/fixture.js'
import { readFixtures } from '../../src/replay/load.js'
import { isForm } from '../../src/senders/proving.js'
import { goJson } from '../kit/go-json.js'
import { schemeOf } from '../../src/senders/senders.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { type HeaderLines, indexHeaders, endToEndHeaders } from '../../src/http/headers.js'
import { type EncodingId, writeJson, writings } from '../../src/senders/encodings.js'
import { formsOf } from '../../src/senders/form-encodings.js'
import { type MessageBody, restore, restoreLikely, type RestoreMethod } from '../../src/senders/restore.js'
import { SECRET, sign } from '../kit/delivery.js'

const [GITHUB, GITEA] = [schemeOf('github'), schemeOf('gitea')]
const SECRETS = { current: new Secret(SECRET) }

const MAX = 1_048_576
const FORM = 'application/x-www-form-urlencoded'

function signed(text: string, type = 'application/json', secret = SECRET): HeaderLines {
  return indexHeaders([
    ['content-type', type],
    ['x-hub-signature-256', sign(secret, Buffer.from(text))],
  ])
}

/** What smee's server leaves of a body: it parses the JSON, and writes its message from the value. */
function throughSmee(body: string): { readonly value: unknown } {
  return { value: JSON.parse(JSON.stringify(JSON.parse(body))) }
}

/** What a server leaves that reads forms too, as Express does. */
function formThroughSmee(body: string): { readonly value: unknown } {
  return { value: Object.fromEntries(new URLSearchParams(body)) }
}

/** The result of restore, with the body as text. */
async function restored(message: MessageBody, lines: HeaderLines, scheme = GITHUB) {
  const { body, how } = (await restore(message, lines, { secrets: SECRETS, scheme, maxBody: MAX })) ?? {}
  return body && how && { body: Buffer.from(body).toString(), how }
}

/** An object as Gitea and Go's json.MarshalIndent write it. */
const indented = (...lines: string[]): string => `{\n  ${lines.join(',\n  ')}\n}`

/** What the writers below, which are not relay's, do not write. */
it.each([
  ['text that only looks like an escape', String.raw`{"a":"\u001B \\u001b"}`, 'compact-upper'],
  ['a newline at the end', '{"a":1}\n', 'compact-newline'],
  ['a newline at the end, as Gitea', `${indented('"a": 1')}\n`, 'indented-go-newline'],
  ["Go's escapes", String.raw`{"a":"\u003c"}`, 'compact-go'],
  ['ASCII, as Python', String.raw`{"a": "\u00e9\u007f", "b": [1, 2]}`, 'spaced-ascii'],
  ['nesting of 1,000, as over HTTP', `${'['.repeat(1000)}${']'.repeat(1000)}`, 'compact'],
  ['four spaces', '{\n    "a": "/é"\n}', 'four-spaces'],
  ['tabs', '{\n\t"a": "/é"\n}\n', 'tab-newline'],
  ['upper-case escapes of HTML', String.raw`{"a":"\u003Cb\u003E"}`, 'compact-html-upper'],
  ['PHP with raw Unicode', String.raw`{"a":"\/é"}`, 'compact-php-unicode'],
  ['Python without ensure_ascii', '{"a": "é", "b": [1, 2]}', 'spaced'],
  ['control characters, as Gitea', indented(String.raw`"a": "\u001b\u0008\u000c\n"`), 'indented-go-long'],
  ['the same of a wiki', '{\n "a": "\\u0008"\n}', 'one-space-go-long'],
  ['bytes that are not UTF-8, as Gitea', indented(String.raw`"a": "\ufffd\u0008"`), 'indented-go-replaced'],
  ['the same of a wiki', '{\n "a": "\\ufffd\\u0008"\n}', 'one-space-go-replaced'],
  ['four spaces in ASCII', '{\n    "a": "\\u00e9"\n}', 'four-spaces-ascii'],
  ['four spaces as PHP', '{\n    "a": "\\/\\u00e9"\n}', 'four-spaces-php'],
  ["tabs with Go's escapes", '{\n\t"a": "\\u003c"\n}', 'tab-go'],
])('what smee parsed is restored: %s', async (_, body, how) => {
  expect(await restored(throughSmee(body), signed(body))).toEqual({ body, how })
})

describe('restore, after another server parsed the body', () => {
  const body = '{ "a": 1.0 }'

  it('restores a body that came as a string', async () => {
    expect(await restored({ value: body }, signed(body))).toEqual({ body, how: 'text' })
    expect(await restored({ value: body }, signed('{"a":1}'))).toBeUndefined()
  })

  it('uses the exact bytes that the server sends, and then nothing else', async () => {
    const message = { value: { a: 1 }, raw: Buffer.from(body) }
    expect(await restored(message, signed(body))).toEqual({ body, how: 'raw' })
    expect(await restored(message, signed('{"a":1}'))).toBeUndefined()
  })
})

/** As programs write a form. Half surrogates become U+FFFD. */
const FORMS: readonly ((payload: string) => string)[] = [
  // Go, Python and Faraday.
  (payload) =>
    encoded(payload)
      .replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%20', '+'),
  (payload) => new URLSearchParams({ payload }).toString(),
  encoded,
]

function encoded(payload: string): string {
  return `payload=${encodeURIComponent(Buffer.from(payload).toString())}`
}

describe('a form', () => {
  it('is written once in each way in which programs write it, and its size is known before', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.constantFrom(...Array.from(" '!()*~+-._é")), fc.string()) }),
        (payload) => {
          const forms = formsOf(Buffer.from(payload))
          const written = forms.map(({ write }) => write())
          expect(written.map(String)).toEqual([...new Set(FORMS.map((write) => write(payload)))])
          expect(forms.map(({ size }) => size)).toEqual(written.map(({ length }) => length))
        },
      ),
    )
  })

  const json = '{"a":"x y*~\'()! é&=%+"}'

  it.each(FORMS.map((write) => write(json)))(
    'is restored from its payload if the provider is GitHub, which signs the form: %s',
    async (body) => {
      const lines = signed(body, FORM)
      expect(await restored({ value: body }, lines)).toEqual({ body, how: 'text' })
      expect(await restored({ value: JSON.parse(json) }, lines)).toEqual({ body, how: 'form' })
    },
  )

  it('is restored as Go writes it if the provider is Gitea, which signs the payload', async () => {
    const payload = indented(String.raw`"a": "x y*~'()! é\u0026=%+"`)
    const body = new URLSearchParams({ payload }).toString().replaceAll('%7E', '~').replaceAll('*', '%2A')
    const lines = signed(payload, FORM)
    for (const left of [formThroughSmee(body), throughSmee(payload), { value: body }])
      expect(await restored(left, lines, GITEA)).toMatchObject({ body })
    const raw = Buffer.from(`x=1&pay%6coad=${encodeURIComponent(payload)}&y=2`)
    expect(await restored({ value: undefined, raw }, lines, GITEA)).toEqual({ body, how: 'form' })
  })

  it('is only restored if Content-Type says form', async () => {
    const body = String(FORMS[0]?.(json))
    expect(await restored(formThroughSmee(body), signed(body))).toBeUndefined()
    expect(await restored({ value: JSON.parse(json) }, signed(json, FORM))).toBeUndefined()
  })

  it('is not restored from a payload that a form cannot hold', async () => {
    const body = 'payload=%EF%BF%BD'
    const lone = { value: { payload: '\ud800' } }
    expect(await restored(lone, signed(body, FORM))).toEqual({ body, how: 'form' })
    const message = { value: undefined, raw: Buffer.from('payload=%ff') }
    expect(await restored(message, signed('\xff', FORM), GITEA)).toBeUndefined()
  })
})

describe('the cost of restore', () => {
  const untouched: MessageBody = {
    get value(): never {
      throw new Error('read')
    },
    get raw(): never {
      throw new Error('read')
    },
  }
  const right = sign(SECRET, Buffer.from('{}'))

  it('is zero if the signature is malformed', async () => {
    const lines = new Map([['x-hub-signature-256', [right.slice(0, -1)]]])
    expect(await restored(untouched, lines)).toBeUndefined()
  })

  const odd = { a: '<\b\u001b\ufffd/\u007fé *~', '"': [], u: { id: 1, login: 'a', username: 'a' } }
  const bodies = (value: unknown): string[] =>
    [...writings(value, MAX)].flatMap(({ text = '', newline }) => (newline ? [text, `${text}\n`] : [text]))

  it('is bounded, and nothing is tried twice', () => {
    const all = bodies(odd)
    expect(new Set(all).size).toBe(all.length)
    expect(all.length).toBeLessThanOrEqual(41)
    expect(bodies(JSON.stringify(odd)).length).toBeLessThanOrEqual(41)
  })

  it('is refused for a body over the limit, however it is written, and for nesting over 1,000', async () => {
    const parts = { secrets: SECRETS, scheme: GITHUB, maxBody: 6 }
    const wrong = signed('other')
    expect(await restore({ value: 'abcd' }, wrong, parts)).toBeUndefined()
    for (const message of [{ value: 'abcdefg' }, { value: 1, raw: Buffer.alloc(7) }])
      await expect(restore(message, wrong, parts)).rejects.toMatchObject({ kind: 'too_large' })
    for (const depth of [1001, 100_000]) {
      const value: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth))
      await expect(restored({ value }, wrong)).rejects.toMatchObject({
        kind: 'invalid_event',
        cause: { message: 'JSON is nested more than 1000 deep' },
      })
    }
  })
})

/** Characters that programs write differently, and text that only looks like an escape or JSON. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...Array.from('"\\/<&\b\f\n\u001b\u007fé\u2028😀\ufffd')),
    fc.constantFrom('\\u003c', '\\b', '{"id":1,"login":"a","username":"a"}', '": ', ',\n  '),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
})
const login = fc.stringMatching(/^[\w.-]{1,40}$/)
const user = fc
  .record({ id: fc.integer({ min: -1 }), login, name: text, admin: fc.boolean() })
  .map(({ id, login, name, admin }) => ({ id, login, full_name: name, is_admin: admin, username: login }))
const nested = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    user,
    fc.constantFrom(null, true, false, [], {}),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
})).value

/** A value in any of the ways that restore knows. */
const written = fc.tuple(nested, fc.nat(), fc.boolean()).map(([value, n, isEnded]) => {
  const all = [...writings(value, MAX)]
  const { text = '', newline = false } = all[n % all.length] ?? {}
  return newline && isEnded ? `${text}\n` : text
})

describe('restore', () => {
  it('returns exactly the body that was signed, in any encoding', async () => {
    await fc.assert(
      fc.asyncProperty(written, async (body) => {
        expect(await restored(throughSmee(body), signed(body))).toMatchObject({ body })
      }),
    )
  })

  it('returns exactly the form that was signed, in any encoding', async () => {
    await fc.assert(
      fc.asyncProperty(written, fc.constantFrom(...FORMS), async (json, write) => {
        const body = write(json)
        expect(await restored(formThroughSmee(body), signed(body, FORM))).toMatchObject({ body })
      }),
    )
  })

  it('returns the signed body or undefined for any JSON', async () => {
    const space = fc.constantFrom('', '', ' ', '\n', '\n  ')
    const number = fc.constantFrom('1', '1.0', '-0', '1e2', '9007199254740993', '0.1')
    const string = fc.constantFrom('"x"', String.raw`"\/"`, '"/"', String.raw`"\u00E9"`, '"é"', '"2"', '"1"')
    const member = fc
      .tuple(string, space, fc.oneof(number, string))
      .map(([key, gap, value]) => `${key}:${gap}${value}`)
    const object = fc
      .tuple(space, fc.array(member, { maxLength: 3 }), fc.constantFrom(',', ', ', ',\n  '), space, space)
      .map(([before, all, comma, inside, after]) => `{${before}${all.join(comma)}${inside}}${after}`)
    await fc.assert(
      fc.asyncProperty(object, async (body) => {
        const { body: outcome } = (await restored(throughSmee(body), signed(body))) ?? {}
        expect([undefined, body]).toContain(outcome)
      }),
    )
  })

  it('returns undefined for another secret', async () => {
    await fc.assert(
      fc.asyncProperty(written, fc.constantFrom(GITHUB, GITEA), async (body, scheme) => {
        const bodies = [throughSmee(body), { value: body }, { value: undefined, raw: Buffer.from(body) }]
        for (const received of bodies)
          for (const type of ['application/json', FORM])
            expect(await restored(received, signed(body, type, 'other'), scheme)).toBeUndefined()
      }),
    )
  })

  it('tries the previous secret too, but no empty secret', async () => {
    const how = async (secret: string, current: string, previous: string): Promise<string | undefined> => {
      const found = await restore({ value: {} }, signed('{}', 'application/json', secret), {
        secrets: { current: new Secret(current), previous: new Secret(previous) },
        scheme: GITHUB,
        maxBody: MAX,
      })
      return found?.how
    }
    const found = [await how('b', 'a', 'b'), await how('', '', 'b'), await how('', 'a', '')]
    expect(found).toEqual(['compact', undefined, undefined])
  })
})

const withUpperEscapes = (json: string): string =>
  json.replaceAll(/\\(?:u[0-9a-f]{4}|.)/g, (escape) =>
    escape.length > 2 ? `\\u${escape.slice(2).toUpperCase()}` : escape,
  )
const withGoEscapes = (json: string): string =>
  json.replaceAll(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const escaped = (json: string, chars: RegExp): string =>
  json.replaceAll(chars, (char) =>
    char === '/' ? '\\/' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** As older Ruby's `JSON.pretty_generate`: what is empty has line breaks in it, a list two. */
function rubyJson(value: unknown, spaces = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const inner = `${spaces}  `
  if (Array.isArray(value)) {
    const items = value.map((item) => inner + rubyJson(item, inner))
    return `[\n${items.join(',\n')}\n${spaces}]`
  }
  const members = Object.entries(value).map(
    ([name, one]) => `${inner}${JSON.stringify(name)}: ${rubyJson(one, inner)}`,
  )
  return `{\n${members.join(',\n')}${members.length > 0 ? '\n' : ''}${spaces}}`
}

/** How each generation of each provider writes a payload, without the code under test. */
const WRITERS = {
  'Stripe, older': (payload: unknown) => rubyJson(payload),
  Stripe: (payload: unknown) => JSON.stringify(payload, null, 2),
  Sentry: (payload: unknown) => escaped(JSON.stringify(payload), /[\u007f-\uffff]/g),
  Shopify: (payload: unknown) => escaped(JSON.stringify(payload), /[/<>&\u2028\u2029]/g),
  Slack: (payload: unknown) => escaped(JSON.stringify(payload), /[/\u0080-\uffff]/g),
  'GitHub, as JSON.stringify': (payload: unknown) => JSON.stringify(payload),
  'GitHub, with upper-case escapes': (payload: unknown) => withUpperEscapes(JSON.stringify(payload)),
  'Gitea 1.15': (payload: unknown) => goJson('push', payload, '1.15'),
  'Gitea 1.15, a repository event': (payload: unknown) => goJson('repository', payload, '1.15'),
  'the newest Gitea': (payload: unknown) => goJson('push', payload, 'newest'),
  'the newest Gitea, a wiki event': (payload: unknown) => goJson('wiki', payload, 'newest'),
  'Gitea in between, and Forgejo': (payload: unknown) => withGoEscapes(goJson('push', payload, 'newest')),
  'the same, a wiki event': (payload: unknown) => withGoEscapes(goJson('wiki', payload, 'newest')),
} as const

type Write = (payload: unknown) => string

/** Written as they are, without quotes. JSON.parse keeps the value of only some of them, and their spelling of fewer. */
const number = fc
  .constantFrom('1', '-1', '9007199254740991', '9007199254740993', '1.0', '1e3', '-0')
  .map((n) => `@@${n}@@`)
const payloads = fc.record({
  action: text,
  sender: user,
  value: fc.array(nested, { maxLength: 4 }),
  number: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: number }),
})
const writers = fc.constantFrom(...Object.entries(WRITERS))

/** A payload that is repeated until it is written as nearly `size` bytes. */
function enlarged(payload: object, size: number, write: Write): object {
  const times = Math.floor(size / Buffer.byteLength(write({ commits: [payload] }))) - 1
  return { ...payload, commits: Array.from({ length: Math.max(0, times) }, () => payload) }
}

/** The scheme of a writer. One that is not Gitea's has the usual order of encodings, as GitHub's has. */
const schemeOfWriter = (name: string): typeof GITHUB => (/Gitea|wiki/.test(name) ? GITEA : GITHUB)

/** A large body is written in the encoding of the last one first: in all, the work is bounded, so that not each would be tried. */
async function restoredAfter(how: RestoreMethod | undefined, body: string, scheme: typeof GITHUB) {
  const options = { secrets: SECRETS, scheme, maxBody: MAX }
  const hints = { last: how }
  const likely = await restoreLikely(throughSmee(body), signed(body), options, hints)
  const found = likely.restored ?? (await restore(throughSmee(body), signed(body), options))
  return found && Buffer.from(found.body).toString()
}

it.each([
  ['small', 0, 300],
  ['up to 1 MiB', MAX, 30],
])('any payload of any generation is restored, or lost by JSON itself: %s', async (_, max, numRuns) => {
  await fc.assert(
    fc.asyncProperty(payloads, fc.noBias(fc.nat(max)), writers, async (payload, size, [name, write]) => {
      const spelled = (value: unknown): string => write(value).replaceAll(/"@@(.*?)@@"/g, '$1')
      const scheme = schemeOfWriter(name)
      const first = spelled(enlarged(payload, 0, write))
      const found = await restored(throughSmee(first), signed(first), scheme)
      const isLost = write(JSON.parse(first)) !== first
      expect(found?.body).toBe(isLost ? undefined : first)
      const body = spelled(enlarged(payload, size, write))
      // Not by `toBe`, which would print a megabyte.
      expect(isLost || (await restoredAfter(found?.how, body, scheme)) === body).toBe(true)
    }),
    { numRuns },
  )
})

it.each(Object.entries(WRITERS))(
  'a large payload is restored that each program writes differently: %s',
  async (name, write) => {
    const user = { id: 1, login: 'a', full_name: '', username: 'a' }
    const one = { user, values: [{ '': '' }, [], {}, '<', '/é\ufffd', '\b\u007f'] }
    const body = write({ commits: Array.from({ length: 3000 }, () => one) })
    // What signs like GitHub is written in the usual order.
    const scheme = /Gitea|wiki/.test(name) ? GITEA : GITHUB
    const found = await restored(throughSmee(body), signed(body), scheme)
    expect(found?.body === body).toBe(true)
  },
)

it('the fixtures are all restored byte for byte', async () => {
  let count = 0
  for await (const { fixture } of readFixtures(['fixtures/github', 'fixtures/gitea'])) {
    const body = Buffer.from(fixtureBody(fixture)).toString()
    const lines = indexHeaders(endToEndHeaders(fixtureLines(fixture)))
    const message = isForm(lines) ? formThroughSmee(body) : throughSmee(body)
    const scheme = fixture.provider === 'gitea' ? GITEA : GITHUB
    const how = isForm(lines) ? 'form' : encodingOf(fixture)
    expect([fixture.event, await restored(message, lines, scheme)]).toEqual([fixture.event, { body, how }])
    count++
  }
  expect(count).toBeGreaterThan(50)
})

function encodingOf({ provider, event, headers }: Fixture): EncodingId {
  if (provider === 'github') return 'compact'
  const isOneSpace = event === 'repository' || event === 'wiki'
  // 1.15 does not send it.
  if ('X-Gitea-Event-Type' in headers) return isOneSpace ? 'one-space' : 'indented'
  return isOneSpace ? 'one-space-users' : 'gitea-users'
}

describe('an encoding', () => {
  /** Characters that programs escape differently, lone surrogates, and text that only looks like an escape. */
  const unit = fc.oneof(
    fc.constantFrom('\\', '"', '/', '\u001f', '\b', '\n', '\u007f', '<', '&', '\u2028', 'é', '😀', '\\u001f'),
    fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  )
  const value = fc.jsonValue({ stringUnit: unit })

  it('writes nothing that is larger than the limit: indenting could fill the memory', () => {
    const deep = `${'['.repeat(900)}${'1,'.repeat(100_000)}1${']'.repeat(900)}`
    const all = [...writings(JSON.parse(deep), 1_000_000)]
    const given = all.filter(({ text }) => text !== undefined).map(({ id }) => id)
    expect(given).toEqual(['compact', 'spaced-ascii'])
    expect(all.map(({ id }) => id)).toEqual([
      'compact',
      'indented-go',
      'one-space-go',
      'spaced-ascii',
      'four-spaces',
      'tab',
    ])
  })

  it('knows how long a text becomes', () => {
    fc.assert(
      fc.property(value, (one) => {
        for (const { text = '', id } of writings(one, Infinity)) {
          const same = [...writings(one, Buffer.byteLength(text))].find((each) => each.id === id)
          const [shorter] = [...writings(one, writeJson('compact', one).length - 1)]
          expect([same?.text, shorter?.text]).toEqual([text, undefined])
        }
      }),
    )
  })
})

it('lays out a deep body with a long line and an empty object in about the time of a flat one', () => {
  const took = (value: unknown): number => {
    const times = Array.from({ length: 3 }, () => {
      const began = performance.now()
      for (const _ of writings(value, 1_048_576)) continue
      return performance.now() - began
    })
    return Math.min(...times)
  }
  const text = 'x'.repeat(700_000)
  const flat = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, i) => [`name-${i}`, `value of ${i}, and more`]),
  )
  const deep: unknown = JSON.parse(`${'['.repeat(400)}"${text}",{}${']'.repeat(400)}`)
  const users = Array.from({ length: 30 }, () => '{"id":1,"login":"ada","a":').join('')
  const nested: unknown = JSON.parse(`${users}"${text}"${'}'.repeat(30)}`)
  // Both took over twenty times as long when one expression looked for the layout in the whole text.
  for (const value of [deep, nested]) expect(took(value)).toBeLessThan(8 * took(flat))
})

describe('numbers that JavaScript writes otherwise', () => {
  /** As the languages write 0, 1, -2, 1e15, 1e16, 1e20, 1e-4, 1e-5, 1.5e-7 and 1.25e22 as floating-point numbers. */
  const written: Readonly<Record<string, string>> = {
    Ruby: '0.0 1.0 -2.0 1000000000000000.0 1.0e+16 1.0e+20 0.0001 1.0e-05 1.5e-07 1.25e+22',
    Python: '0.0 1.0 -2.0 1000000000000000.0 1e+16 1e+20 0.0001 1e-05 1.5e-07 1.25e+22',
    Java: '0.0 1.0 -2.0 1.0E15 1.0E16 1.0E20 1.0E-4 1.0E-5 1.5E-7 1.25E22',
    PHP: '0.0 1.0 -2.0 1000000000000000.0 10000000000000000.0 1.0e+20 0.0001 1.0e-5 1.5e-7 1.25e+22',
    'Newtonsoft.Json': '0.0 1.0 -2.0 1E+15 1E+16 1E+20 0.0001 1E-05 1.5E-07 1.25E+22',
  }
  const LAYOUTS = ['compact', 'indented', 'spaced', 'tab'] as const

  it.each(Object.entries(written))(
    'are restored as %s writes them, alone and together, in any layout',
    async (_, text) => {
      const numbers = text.split(' ')
      for (const list of [...numbers.map((one) => [one]), numbers, [...numbers, '7', '12345678']])
        for (const layout of LAYOUTS) {
          // The integers are those of another member.
          const members = list.map((one, n) => ({
            [/^\d+$/.test(one) ? 'id' : 'rate']: { at: n, value: `@${n}@` },
          }))
          const body = writeJson(layout, members).replaceAll(
            /"@(\d+)@"/g,
            (__, n: string) => list[Number(n)] ?? '',
          )
          const message = { ...throughSmee(body), length: Buffer.byteLength(body) }
          const found = await restored(message, signed(body))
          expect(found?.body).toBe(body)
        }
    },
  )

  it.each([
    ['amounts of money', '{"id":3,"amount":12.50,"fee":1.00,"total":13.50}', 'compact-floats'],
    ['one of a list', '{"id":1,"list":[1,2.5,3.0],"n":4}', 'compact-floats'],
    [
      'all but one',
      `{${Array.from({ length: 40 }, (_, n) => `"m${n}":${n === 7 ? '7' : `${n}.0`}`).join()}}`,
      'compact-floats',
    ],
    ['with upper-case escapes', String.raw`{"a":"\u001B","score":1.0}`, 'compact-upper-floats'],
    ['with a newline at the end', '{"a":1.0}\n', 'compact-newline-floats'],
  ])('%s', async (_, body, how) => {
    const message = { ...throughSmee(body), length: Buffer.byteLength(body) }
    expect(await restored(message, signed(body))).toEqual({ body, how })
  })

  it.each(['{"n":12345678901234567890}', '{"n":-0}', '{"n":1e3}', '{"n":1.000}'])(
    'are not, where the value does not say how: %s',
    async (body) => {
      expect(await restored({ ...throughSmee(body), length: body.length }, signed(body))).toBeUndefined()
    },
  )
})
