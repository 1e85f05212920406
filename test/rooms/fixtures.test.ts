import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { RelayError } from '../../src/base/errors.js'
import { type Header, endToEndHeaders } from '../../src/http/headers.js'
import {
  type Fixture,
  fixtureBody,
  fixtureLines,
  fixtureText,
  fromFixture,
  type RecordedDelivery,
  toFixture,
} from '../../src/replay/fixture.js'
import { findFixtures, type FoundFixture, fixtureSchema, parseFixture } from '../../src/replay/load.js'
import { emptyFolder } from '../kit/folder.js'

const FIXTURE: Fixture = {
  relay: 1,
  provider: 'github',
  event: 'push',
  delivery: 'id-1',
  headers: { 'X-GitHub-Event': 'push' },
  body: '{}\r\n',
}
const { body: _, ...REST } = FIXTURE
const validate = new Ajv2020().compile(z.toJSONSchema(fixtureSchema))

function recorded(body: Uint8Array, headers: readonly Header[] = []): RecordedDelivery {
  return { provider: 'github', event: 'push', deliveryId: 'a', headers, body }
}

/** Bodies of any bytes, of text, and of text with what editors and servers put around it. */
const bodies = fc.oneof(
  fc.uint8Array({ maxLength: 64 }),
  fc
    .tuple(
      fc.constantFrom('', '\ufeff', '\0', ' '),
      fc.oneof(fc.string({ unit: 'binary' }), fc.json()),
      fc.constantFrom('', '\n', '\r\n'),
    )
    .map((parts): Uint8Array => Buffer.from(parts.join(''))),
)
const names = fc.oneof(
  fc.constantFrom('X-Twice', 'x-twice', '__proto__', 'constructor', '12'),
  fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,9}$/),
)
const values = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,9}$/)

describe('a fixture', () => {
  it('gives back any delivery, byte for byte, also where it holds the payload', () => {
    fc.assert(
      fc.property(bodies, fc.array(fc.tuple(names, values)), fc.boolean(), (body, headers, pretty) => {
        const fixture = toFixture(recorded(body, headers), { pretty })
        const read = parseFixture(fixtureText(fixture), 'x.json')
        expect(Buffer.from(fixtureBody(read))).toEqual(Buffer.from(body))
        expect(byName(endToEndHeaders(fixtureLines(read)))).toEqual(byName(endToEndHeaders(headers)))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['half a character', Buffer.of(0xf0, 0x9f), { bodyBase64: '8J8=' }],
    ['a byte order mark', Buffer.of(0xef, 0xbb, 0xbf), { body: '\ufeff' }],
    ['nothing', Buffer.of(), { body: '' }],
  ])('holds the body as text where it is UTF-8: %s', (_, body, expected) => {
    const { relay, provider, event } = FIXTURE
    expect(toFixture(recorded(body))).toEqual({
      relay,
      provider,
      event,
      delivery: 'a',
      headers: {},
      ...expected,
    })
  })

  it('rewrites no terminal that shows it', () => {
    const text = '\u007f\u009b2J\u061c\u200e\u200f\u2028\u202e\u2066\u2069 é 👩‍💻 \u001b'
    const shown = fixtureText(toFixture(recorded(Buffer.from(text), [['X-Text', text]])))
    expect(shown).toContain(
      String.raw`"\u007f\u009b2J\u061c\u200e\u200f\u2028\u202e\u2066\u2069 é 👩‍💻 \u001b"`,
    )
  })

  it('has nothing of the connection, and no credentials', () => {
    const left =
      `Host Content-Length Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Expect Authorization
      Cookie Proxy-Authorization proxy-connection`.split(/\s+/)
    const headers = [...left.map((name): Header => [name, 'x']), ['X-Proxy', 'kept'] as const]
    expect(toFixture(recorded(Buffer.of(), headers)).headers).toEqual({ 'X-Proxy': 'kept' })
  })

  it.each([
    ['a large number', '{"a":12345678901234567890}'],
    ['a repeated key', '{"a":1,"a":2}'],
    ['keys that JavaScript reorders', '{"b":1,"1":2}'],
    ['a list', '[1]'],
    ['a form', 'payload=%7B%7D'],
  ])('is not pretty for %s, which would come back otherwise', (_, text) => {
    expect(toFixture(recorded(Buffer.from(text)), { pretty: true }).payload).toBeUndefined()
  })
})

describe('reading a fixture', () => {
  it.each([
    [{ body: undefined }, 'line 1: must have one of body, bodyBase64, payload'],
    [{ payload: {} }, 'line 10: payload: not together with body'],
    [{ encoding: 'compact' }, 'line 10: encoding: not together with body'],
    [{ boddy: '' }, 'line 10: boddy: no such field'],
    [{ scheme: 'strpe' }, 'line 10: scheme: names no scheme that relay knows'],
    [{ scheme: 'hmac' }, 'line 10: scheme: names no scheme that relay knows'],
    [{ relay: 2 }, "line 2: relay: must be 1, the format's version"],
    [{ provider: 'Git Hub' }, 'line 3: provider: must be a lower-case name like github'],
    [{ event: '' }, 'line 4: event: must be the name of an event, like push'],
    [{ delivery: 1 }, 'line 5: delivery: must be 1 to 200 visible ASCII characters'],
    [{ headers: [] }, 'line 6: headers: must be an object of headers'],
    [{ headers: { a: 'b', 'c d': 'e' } }, "line 8: headers.c d: must be a header's name"],
    [
      { headers: { a: 'b', c: 'd\n' } },
      'line 8: headers.c: must be text in latin1 without control characters, or a list of such',
    ],
    [{ headers: { a: 'b', c: [] } }, 'line 8: headers.c: must not be an empty list'],
    [{ body: '\ud800' }, 'line 9: body: has half a character; bodyBase64 can hold any bytes'],
    [{ body: undefined, bodyBase64: '6R==' }, 'line 9: bodyBase64: must be base64'],
    [{ body: undefined, bodyBase64: '6Q' }, 'line 9: bodyBase64: must be base64'],
    [{ body: undefined, payload: 'x' }, 'line 9: payload: must be an object or a list'],
    [{ body: 'é'.repeat(13_107_201) }, 'line 9: body: must be at most 25 MiB'],
  ])('reports where %o is wrong: %s', (wrong, message) => {
    const fixture = { ...FIXTURE, ...wrong }
    expect(failing(JSON.stringify(fixture, null, 2))).toEqual(['usage', `x.json, ${message}`])
    // What no JSON Schema can say.
    const isOwn = /that relay knows|half a character|base64$|25 MiB/.test(message)
    expect(validate(JSON.parse(JSON.stringify(fixture)))).toBe(isOwn)
  })

  it.each([
    ['{\n"relay": 1,\n}', 'line 3: not JSON'],
    ['\n[]', 'line 2: must be an object'],
  ])('reports where %j is wrong: %s', (text, message) => {
    expect(failing(text)).toEqual(['usage', `x.json, ${message}`])
  })
})

describe('the source of a fixture', () => {
  const sent = { event: 'orders/create', deliveryId: 'a', headers: [], body: Buffer.from('{}') }

  it.each([
    [{ provider: 'github' }, { provider: 'github' }],
    [{ provider: 'forgejo' }, { provider: 'forgejo' }],
    [{ provider: 'shopify' }, { provider: 'shopify', source: 'shopify', scheme: 'shopify' }],
    [
      { provider: 'shop', scheme: 'shopify' },
      { provider: 'shopify', source: 'shop', scheme: 'shopify' },
    ],
    [
      { provider: 'second', scheme: 'github' },
      { provider: 'github', source: 'second', scheme: 'github' },
    ],
    [
      { provider: 'door', scheme: 'hmac header=X-Door' },
      { provider: 'hmac', source: 'door', scheme: 'hmac header=X-Door' },
    ],
  ])('%o is written as %o, and comes back', (from, written) => {
    const fixture = toFixture({ ...from, ...sent })
    const { provider, source, scheme } = fixture
    expect({ provider, source, scheme }).toEqual({ source: undefined, scheme: undefined, ...written })
    expect(fromFixture(parseFixture(fixtureText(fixture), 'x.json'))).toEqual({ ...from, ...sent })
  })

  it('is the provider where a file names no other, signed as that is', () => {
    const { provider, scheme } = fromFixture({ ...FIXTURE, provider: 'stripe', source: 'billing' })
    expect({ provider, scheme }).toEqual({ provider: 'billing', scheme: 'stripe' })
  })
})

describe('the fixtures of this package', () => {
  const files = ['github', 'gitea'].flatMap((provider) =>
    readdirSync(`fixtures/${provider}`).map((file) => `fixtures/${provider}/${file}`),
  )
  const read = (file: string): Fixture => parseFixture(readFileSync(file, 'utf8'), file)

  it('have the JSON Schema of what relay reads', async () => {
    const schema = JSON.stringify(z.toJSONSchema(fixtureSchema), null, 2)
    await expect(`${schema}\n`).toMatchFileSnapshot('../../fixtures/fixture.schema.json')
  })

  it.each(files)('%s fits the schema, and gives the same delivery where it holds the payload', (file) => {
    const fixture = read(file)
    expect(validate(fixture)).toBe(true)
    const pretty = toFixture(fromFixture(fixture), { pretty: true })
    expect(pretty.encoding).toBe(encodingOf(fixture.provider, file))
    expect(fromFixture(parseFixture(fixtureText(pretty), file))).toEqual(fromFixture(fixture))
  })

  it.each([
    { ...REST, bodyBase64: 'AAA=' },
    { ...REST, payload: {}, $schema: 'x' },
    { ...FIXTURE, headers: { a: ['b', 'c'] } },
  ])('have a schema that takes what relay takes: %j', (fixture) => {
    expect([validate(fixture), failing(JSON.stringify(fixture))]).toEqual([true, undefined])
  })
})

/** Gitea 1.15 writes users compact in an indented payload, which has no encoding here: its body stays as it is. */
function encodingOf(provider: string, file: string): string | undefined {
  if (file.includes('.form')) return undefined
  if (provider === 'github') return 'compact'
  if (!file.includes('.newest.')) return undefined
  return /repository|wiki/.test(file) ? 'indented-one' : 'indented'
}

/** The values of each name, in order; an object puts names that are whole numbers first. */
function byName(pairs: readonly Header[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [name, value] of pairs) {
    const key = name.toLowerCase()
    found.set(key, [...(found.get(key) ?? []), value])
  }
  return found
}

function failing(text: string): [string, string] | undefined {
  try {
    parseFixture(text, 'x.json')
    return undefined
  } catch (error) {
    return error instanceof RelayError ? [error.kind, error.message] : undefined
  }
}

it.skipIf(process.platform === 'win32')(
  'a pipe is read once and at once, a file when its turn comes',
  async () => {
    const folder = emptyFolder()
    const [pipe, file] = [path.join(folder, 'pipe'), path.join(folder, 'file')]
    const textOf = (delivery: string): string => JSON.stringify({ ...FIXTURE, delivery })
    execFileSync('mkfifo', [pipe])
    writeFileSync(file, textOf('early'))
    const writing = writeFile(pipe, textOf('pipe'))
    const found: FoundFixture[] = []
    for await (const each of findFixtures([pipe, file])) found.push(each)
    await writing
    writeFileSync(file, textOf('late'))
    const read = (): string[] => found.map(({ load }) => load().delivery)
    expect([read(), read()]).toEqual([
      ['pipe', 'late'],
      ['pipe', 'late'],
    ])
  },
)
