import { assert, property, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { parseUserId } from '../../src/tokens/user-id.js'

describe('a userId', () => {
  it.each([
    'a',
    'ann@example.com',
    '__proto__',
    'token:ann',
    '...',
    'Ünïcödé-😀',
    '%2F',
    'x'.repeat(256),
    '😀'.repeat(64),
  ])('may be %j', (text) => {
    expect(parseUserId(text)).toBe(text)
  })

  it.each([
    ['empty', ''],
    ['257 bytes long', 'x'.repeat(257)],
    ['257 bytes long in fewer characters', 'x' + '😀'.repeat(64)],
    ['a dot', '.'],
    ['two dots', '..'],
    ['a path', 'a/b'],
    ['two words', 'a b'],
    ['with an exotic space', 'a\u2003b'],
    ['with a byte order mark', '\ufeffa'],
    ['two lines', 'a\nb'],
    ['with a line separator', 'a\u2028b'],
    ['with NUL', 'a\0'],
    ['with DEL', 'a\u007f'],
    ['with a control character above ASCII', 'a\u009b'],
    ['half a surrogate pair', 'a\ud83d'],
  ])('may not be %s', (_, text) => {
    expect(() => parseUserId(text)).toThrow(new RelayError('bad_request', 'Invalid userId'))
  })

  it('that is valid is unchanged in a path, a key and a line', () => {
    assert(
      property(string({ unit: 'binary', minLength: 1, maxLength: 8 }).filter(isTaken), (userId) => {
        const { pathname } = new URL(`http://localhost/auth/token/${encodeURIComponent(userId)}`)
        expect(decodeURIComponent(pathname.slice('/auth/token/'.length))).toBe(userId)
        expect(Buffer.from(userId).toString()).toBe(userId)
        expect(userId.split(/\s/)).toEqual([userId])
      }),
    )
  })
})

function isTaken(text: string): boolean {
  try {
    return parseUserId(text) === text
  } catch {
    return false
  }
}
