import { type Invalid, invalid } from './explanation.js'
import type { HeaderLines } from './headers.js'
import { SIGNATURE_HEADER } from './signature.js'

const HEADER = 'X-Hub-Signature-256'
const WANTED = `${HEADER}: sha256=<64 lower-case hex digits>`
/** A SHA-256 however it is introduced and spelled: in hexadecimal, or in base64. */
const HEX = /^(?:sha-?256=)?([0-9a-f]{64})$/i
const BASE64 = /^(?:sha-?256=)?([\w+/-]{43})=?$/i

/**
 * What is wrong with where and how a request carries its signature; undefined when it is there as it should be. `fits`
 * says whether a signature in the proper form would have been right.
 */
export function explainHeader(lines: HeaderLines, fits: (signature: string) => boolean): Invalid | undefined {
  // What stands between may have joined two lines to one.
  const [signature, second] = (lines.get(SIGNATURE_HEADER) ?? []).flatMap((value) => value.split(','))
  if (signature === undefined) return explainAbsence(lines, fits)
  if (second !== undefined) return invalid('repeated_signature', `${HEADER} is given more than once`)
  if (/^(?:sha256=)?\s*$/i.test(signature)) return EMPTY
  if (/^sha1=/i.test(signature))
    return invalid('only_sha1', `${HEADER} holds a SHA-1 signature, expected ${WANTED}`)
  const why = misspelling(signature)
  return why === undefined
    ? undefined
    : invalid('malformed_signature', `${why}, expected ${WANTED}${verdict(proper(signature), fits)}`)
}

const EMPTY = invalid('empty_signature', 'the signature is empty: the webhook has no secret at the code host')

function misspelling(signature: string): string | undefined {
  if (/^sha256=[0-9a-f]{64}$/.test(signature)) return undefined
  if (/^[0-9a-f]{64}$/i.test(signature)) return `${HEADER} lacks the prefix sha256=`
  if (/^sha256=[0-9a-f]{64}$/i.test(signature)) return `${HEADER} is in upper case`
  return BASE64.test(signature) ? `${HEADER} is in base64` : `${HEADER} is malformed`
}

/** Where else the signature may be. */
function explainAbsence(lines: HeaderLines, fits: (signature: string) => boolean): Invalid {
  const elsewhere = signaturesElsewhere(lines)
  const found =
    elsewhere.find(([, signature]) => fits(signature)) ??
    elsewhere.find(([name]) => name.includes('signature'))
  if (found) {
    const [name, signature] = found
    const hint = `the signature is in ${spelled(name)}, expected ${WANTED}${verdict(signature, fits)}`
    return invalid('wrong_header', hint)
  }
  const legacy = lines.get('x-hub-signature')?.[0] ?? ''
  if (/^sha1=[0-9a-f]{40}$/i.test(legacy))
    return invalid('only_sha1', `there is only a SHA-1 signature (X-Hub-Signature), expected ${WANTED}`)
  if (lines.get('x-gitea-signature')?.[0] === '') return EMPTY
  return invalid('no_signature', `there is no ${HEADER}: has the webhook a secret at the code host?`)
}

/** Code hosts send three at most, and each may cost a hash of the body. */
const MOST_ELSEWHERE = 4
const LONGEST_NAME = 64

/** The headers, by name, that may hold a SHA-256 signature, which is given in its proper form. */
function signaturesElsewhere(lines: HeaderLines): (readonly [name: string, signature: string])[] {
  return [...lines]
    .filter(([name]) => name.length <= LONGEST_NAME && /signature|hmac|digest|sha-?256/.test(name))
    .flatMap(([name, [value = '']]) => {
      const signature = proper(value)
      return signature === undefined ? [] : [[name, signature] as const]
    })
    .slice(0, MOST_ELSEWHERE)
}

/** The signature as it should be written. */
function proper(value: string): string | undefined {
  const [, hex] = HEX.exec(value) ?? []
  if (hex !== undefined) return `sha256=${hex.toLowerCase()}`
  const [, base64] = BASE64.exec(value) ?? []
  return base64 === undefined ? undefined : `sha256=${Buffer.from(base64, 'base64').toString('hex')}`
}

function verdict(signature: string | undefined, fits: (signature: string) => boolean): string {
  if (signature === undefined) return ''
  return fits(signature) ? '; otherwise it is right' : '; and it does not fit the secret and the body either'
}

/** Names are looked up in lower case; a person knows them as `X-Gitea-Signature`. */
function spelled(name: string): string {
  return name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
