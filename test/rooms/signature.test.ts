import { schemeOf } from '../../src/codehost/schemes.js'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { indexHeaders } from '../../src/http/headers.js'
import { hubSignature } from '../../src/codehost/hub-signature.js'
import { hasProof, provenBy } from '../../src/webhook/signature.js'

const [GITHUB, GITEA] = [schemeOf('github'), schemeOf('gitea')]

const secret = "It's a Secret to Everybody"
const body = Buffer.from('Hello, World!')
/** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation */
const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
const hex = published.slice('sha256='.length)
const sign = (key: string, bytes: Uint8Array): string => hubSignature(new Secret(key), bytes)

interface Case {
  readonly signatures?: readonly string[]
  readonly bytes?: Uint8Array
  readonly current?: string
  readonly previous?: string
  readonly type?: string
  readonly scheme?: typeof GITHUB
}

function by({ signatures = [published], bytes = body, current = secret, previous, type, scheme }: Case) {
  const lines = signatures.map((value) => ['X-Hub-Signature-256', value] as const)
  const secrets = {
    current: new Secret(current),
    previous: previous === undefined ? undefined : new Secret(previous),
  }
  const sender = { scheme: scheme ?? GITHUB, secrets }
  return provenBy(indexHeaders([...lines, ['Content-Type', type ?? '']]), bytes, sender)
}

describe('hubSignature', () => {
  it("gives GitHub's published signature", () => {
    expect(sign(secret, body)).toBe(published)
  })

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
    expect([by({ signatures }), hasProof(lines, GITHUB)]).toEqual([undefined, false])
  })

  it('refuses a signature made with an empty secret, even if one is configured', () => {
    const signatures = [sign('', body)]
    expect([by({ signatures, current: '' }), by({ signatures, previous: '' })]).toEqual([
      undefined,
      undefined,
    ])
  })

  it("covers a form as it is sent, but of Gitea's the JSON in it", () => {
    const bytes = Buffer.from('x=1&payload=%7B%7D')
    const form = { bytes, type: 'application/x-www-form-urlencoded; charset=utf-8' }
    const [whole, json] = [[sign(secret, bytes)], [sign(secret, Buffer.from('{}'))]]
    const scheme = GITEA
    expect([
      by({ ...form, signatures: whole }),
      by({ ...form, signatures: json }),
      by({ ...form, signatures: whole, scheme }),
      by({ ...form, signatures: json, scheme }),
      by({ bytes, signatures: json, scheme }),
    ]).toEqual(['current', undefined, undefined, 'current', undefined])
  })

  it('refuses the bytes after one byte was altered', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (bytes, at, change) => {
          const altered = bytes.map((byte, i) => (i === at % bytes.length ? byte ^ change : byte))
          expect(by({ signatures: [sign(secret, bytes)], bytes: altered })).toBeUndefined()
        },
      ),
    )
  })
})
