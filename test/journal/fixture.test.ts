import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Header } from '../../src/journal/delivery.js'
import { fixtureBody, fixtureLines, fixtureText, toFixture, type Fixture } from '../../src/journal/fixture.js'
import { passedOn } from '../../src/journal/headers.js'
import { delivery } from './rig.js'

const headers = (pairs: readonly Header[]) => toFixture(delivery('a', { headers: pairs })).headers

describe('a fixture', () => {
  it('is a file for people', () => {
    const given = delivery('id-1', {
      event: 'issues',
      headers: [
        ['Content-Type', 'application/json'],
        ['X-Twice', 'one'],
        ['x-twice', 'two é'],
      ],
      body: Buffer.from('{"a":\t"é\u0000"}\r\n'),
    })
    expect(fixtureText(toFixture(given))).toBe(String.raw`{
  "relay": 1,
  "provider": "github",
  "event": "issues",
  "delivery": "id-1",
  "headers": {
    "Content-Type": "application/json",
    "X-Twice": [
      "one",
      "two é"
    ]
  },
  "body": "{\"a\":\t\"é\u0000\"}\r\n"
}
`)
  })

  it.each([
    ['nothing', Buffer.of(), { body: '' }],
    ['a byte order mark', Buffer.of(0xef, 0xbb, 0xbf), { body: '\ufeff' }],
    ['latin1', Buffer.of(0xe9), { bodyBase64: '6Q==' }],
    ['half a character', Buffer.of(0xf0, 0x9f), { bodyBase64: '8J8=' }],
    ['an overlong form', Buffer.of(0xc0, 0x80), { bodyBase64: 'wIA=' }],
    ['half a surrogate pair', Buffer.of(0xed, 0xa0, 0x80), { bodyBase64: '7aCA' }],
  ])('keeps the body exactly: %s', (_, body, expected) => {
    const fixture = toFixture(delivery('a', { body, headers: [] }))
    const { relay, provider, event, delivery: id } = fixture
    expect(fixture).toEqual({ relay, provider, event, delivery: id, headers: {}, ...expected })
  })

  it('gives back any body', () => {
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.string({ unit: 'binary' }).map((text): Uint8Array => Buffer.from(text)),
    )
    fc.assert(
      fc.property(body, (given) => {
        const fixture: Fixture = JSON.parse(fixtureText(toFixture(delivery('a', { body: given }))))
        expect(Buffer.from(fixtureBody(fixture))).toEqual(Buffer.from(given))
      }),
      { numRuns: 1000 },
    )
  })

  it('gives back any headers, those of one name together', () => {
    const name = fc.oneof(
      fc.constantFrom('X-Twice', 'x-twice', '__proto__', 'constructor', '12', 'Accept'),
      fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,10}$/),
    )
    const value = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((c) => String.fromCharCode(c)) })
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), (given) => {
        const kept = passedOn(given)
        const fixture: Fixture = JSON.parse(fixtureText(toFixture(delivery('a', { headers: given }))))
        expect(byName(passedOn(fixtureLines(fixture)))).toEqual(byName(kept))
      }),
      { numRuns: 1000 },
    )
  })

  it('keeps the order of the headers', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[A-Za-z][A-Za-z-]{0,6}$/), {
      selector: (name) => name.toLowerCase(),
    })
    fc.assert(
      fc.property(names, (given) => {
        const pairs = passedOn(given.map((name) => [name, 'x']))
        expect(Object.keys(headers(pairs))).toEqual(pairs.map(([name]) => name))
      }),
    )
  })

  it('has nothing of the connection, and no credentials', () => {
    const kept: Header[] = [
      ['Accept', '*/*'],
      ['X-GitHub-Event', 'push'],
      ['X-Proxy', 'kept'],
    ]
    const names =
      'Host Content-Length Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Expect Authorization Cookie'
    const left = [...names.split(' '), 'Proxy-Authorization', 'proxy-connection'].map((name): Header => [
      name,
      'x',
    ])
    expect(headers([...left, ...kept])).toEqual(Object.fromEntries(kept))
    expect(headers([['Connection', 'close, X-Hop'], ['x-hop', '1'], ...kept])).toEqual(
      Object.fromEntries(kept),
    )
  })
})

/** The values of each name, in order; an object puts names that are whole numbers first. */
function byName(pairs: readonly Header[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [name, value] of pairs) {
    const key = name.toLowerCase()
    found.set(key, [...(found.get(key) ?? []), value])
  }
  return found
}
