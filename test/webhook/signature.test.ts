import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { sign, verify } from '../../src/webhook/signature.js'

const secret = "It's a Secret to Everybody"
const secrets = { current: new Secret(secret) }
const body = Buffer.from('Hello, World!')
const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
const hex = published.slice('sha256='.length)

describe('sign', () => {
  it("gives GitHub's published signature", () => {
    expect(sign(secret, body)).toBe(published)
    expect(sign(new Secret(secret), body)).toBe(published)
  })

  it('keys the digest with the UTF-8 of the secret (RFC 4231 case 2 for the digest)', () => {
    expect(sign('Jefe', Buffer.from('what do ya want for nothing?'))).toBe(
      'sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
    expect(sign('🔑', body)).not.toBe(sign('?', body))
  })
})

it('signs bytes of any length', () => {
  for (const length of [0, 1_048_576, 3_145_729]) {
    const bytes = Buffer.alloc(length, 'x')
    const whole = createHmac('sha256', secret).update(bytes).digest('hex')
    expect(sign(secret, bytes)).toBe(`sha256=${whole}`)
  }
})

describe('verify', () => {
  it("accepts GitHub's published signature", () => {
    expect(verify(published, body, secrets)).toBe('current')
  })

  it('returns which secret matched', () => {
    const rotating = { current: new Secret('new'), previous: new Secret(secret) }
    expect(verify(published, body, rotating)).toBe('previous')
    expect(verify(sign('new', body), body, rotating)).toBe('current')
    expect(verify(sign('older', body), body, rotating)).toBeUndefined()
  })

  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['of an empty digest', 'sha256='],
    ['short', published.slice(0, -1)],
    ['short by a byte', published.slice(0, -2)],
    ['long', `${published}0`],
    ['upper-case', `sha256=${hex.toUpperCase()}`],
    ['with an upper-case prefix', `SHA256=${hex}`],
    ['without a prefix', hex],
    ['SHA-1', 'sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59'],
    ['SHA-1 called SHA-256', 'sha256=01dc10d0c83e72ed246219cdd91669667fe2ca59'],
    ['not hexadecimal', `sha256=${'g'.repeat(64)}`],
    ['not ASCII', `sha256=${'é'.repeat(64)}`],
    ['full-width digits', `sha256=${'0'.repeat(64)}`],
    ['followed by a line end', `${published}\n`],
    ['preceded by a space', ` ${published}`],
    ['twice, joined by a comma', `${published}, ${published}`],
    ['all zero', `sha256=${'0'.repeat(64)}`],
  ])('refuses a signature that is %s', (_, signature) => {
    expect(verify(signature, body, secrets)).toBeUndefined()
  })

  it('refuses a signature made with an empty secret, even if one is configured', () => {
    const signature = sign('', body)
    expect(verify(signature, body, { current: new Secret('') })).toBeUndefined()
    expect(verify(signature, body, { current: new Secret(secret), previous: new Secret('') })).toBeUndefined()
  })

  it('accepts any bytes signed with the same secret', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), fc.uint8Array(), (key, bytes) => {
        expect(verify(sign(key, bytes), bytes, { current: new Secret(key) })).toBe('current')
      }),
    )
  })

  it('refuses the bytes after one byte was altered', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (bytes, at, by) => {
          const altered = bytes.map((byte, i) => (i === at % bytes.length ? byte ^ by : byte))
          expect(verify(sign(secret, bytes), altered, secrets)).toBeUndefined()
        },
      ),
    )
  })
})
