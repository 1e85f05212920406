import { schemeOf } from '../../src/codehost/schemes.js'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { indexHeaders } from '../../src/http/headers.js'
import { hasProof, sign as signed } from '../../src/schemes/proof.js'
import { provenBy } from '../../src/webhook/signature.js'

const GITHUB = schemeOf('github')

const secret = "It's a Secret to Everybody"
const body = Buffer.from('Hello, World!')
/** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation */
const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
const hex = published.slice('sha256='.length)
const sign = (key: string, body: Uint8Array): string =>
  signed(new Secret(key), { id: '', body, now: 0 }, GITHUB)[0]?.[1] ?? ''

describe('hubSignature', () => {
  it('keys the digest with the UTF-8 of the secret (RFC 4231 case 2 for the digest)', () => {
    expect(sign('Jefe', Buffer.from('what do ya want for nothing?'))).toBe(
      'sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
    expect(sign('🔑', body)).not.toBe(sign('?', body))
  })
})

describe('provenBy', () => {
  it.each([
    ['short by a byte', [published.slice(0, -2)]],
    ['with an upper-case prefix', [`SHA256=${hex}`]],
    ['without a prefix', [hex]],
    ['SHA-1 called SHA-256', ['sha256=01dc10d0c83e72ed246219cdd91669667fe2ca59']],
    ['not hexadecimal', [`sha256=${'g'.repeat(64)}`]],
    ['full-width digits', [`sha256=${'０'.repeat(64)}`]],
    ['followed by a line end', [`${published}\n`]],
    ['preceded by a space', [` ${published}`]],
    ['twice, joined by a comma', [`${published}, ${published}`]],
  ])('refuses a signature that is %s, before anything is hashed', (_, signatures) => {
    const lines = indexHeaders(signatures.map((value) => ['x-hub-signature-256', value]))
    const sender = { scheme: GITHUB, secrets: { current: new Secret(secret) } }
    expect([provenBy(lines, body, sender), hasProof(lines, GITHUB)]).toEqual([undefined, false])
  })
})
