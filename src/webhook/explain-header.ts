import { spelledHeader } from '../http/headers.js'
import { type Invalid, invalid } from './explanation.js'
import type { HeaderLines } from './headers.js'
import { SIGNATURE_HEADER } from './signature.js'

const HEADER = 'X-Hub-Signature-256'
const EXPECTED = `${HEADER}: sha256=<64 lower-case hex digits>`
/** A SHA-256 digest, with or without prefix: in hexadecimal, or in base64. */
const HEX = /^(?:sha-?256=)?([0-9a-f]{64})$/i
const BASE64 = /^(?:sha-?256=)?([\w+/-]{43})=?$/i

/** Whether a signature in the form `sha256=…` matches the request. */
type Matches = (signature: string) => boolean

/** What is wrong with the signature header: missing, misplaced or malformed. Undefined if it is well-formed. */
export function explainHeader(lines: HeaderLines, matches: Matches): Invalid | undefined {
  // A proxy may have joined two lines into one.
  const [signature, second] = (lines.get(SIGNATURE_HEADER) ?? []).flatMap((value) => value.split(','))
  if (signature === undefined) return explainAbsence(lines, matches)
  if (second !== undefined) return invalid('repeated_signature', `${HEADER} is given more than once`)
  if (/^(?:sha256=)?\s*$/i.test(signature)) return EMPTY
  if (/^sha1=/i.test(signature))
    return invalid('only_sha1', `${HEADER} holds a SHA-1 signature, expected ${EXPECTED}`)
  const defect = formatDefect(signature)
  return defect === undefined
    ? undefined
    : invalid(
        'malformed_signature',
        `${defect}, expected ${EXPECTED}${matchNote(normalize(signature), matches)}`,
      )
}

/** Headers with a bare digest, like `X-Gitea-Signature`. They are empty if the webhook has no secret. */
const DIGEST = /^x-(?!hub-)[a-z]+-signature$/
const EMPTY = invalid('empty_signature', 'the signature is empty: the webhook has no secret at the code host')

function formatDefect(signature: string): string | undefined {
  if (/^sha256=[0-9a-f]{64}$/.test(signature)) return undefined
  if (/^[0-9a-f]{64}$/i.test(signature)) return `${HEADER} lacks the prefix sha256=`
  if (/^sha256=[0-9a-f]{64}$/i.test(signature)) return `${HEADER} is in upper case`
  return BASE64.test(signature) ? `${HEADER} is in base64` : `${HEADER} is malformed`
}

/** Looks for the signature in other headers. */
function explainAbsence(lines: HeaderLines, matches: Matches): Invalid {
  const others = otherSignatures(lines)
  const found =
    others.find(([, signature]) => matches(signature)) ?? others.find(([name]) => name.includes('signature'))
  if (found) {
    const [name, signature] = found
    const hint = `the signature is in ${spelledHeader(name)}, expected ${EXPECTED}${matchNote(signature, matches)}`
    return invalid('wrong_header', hint)
  }
  const legacy = lines.get('x-hub-signature')?.[0] ?? ''
  if (/^sha1=[0-9a-f]{40}$/i.test(legacy))
    return invalid('only_sha1', `there is only a SHA-1 signature (X-Hub-Signature), expected ${EXPECTED}`)
  if ([...lines].some(([name, [value]]) => value === '' && DIGEST.test(name))) return EMPTY
  return invalid('no_signature', `there is no ${HEADER}: does the webhook have a secret at the code host?`)
}

/** Code hosts send three at most, and each may cost a hash of the body. */
const MAX_OTHERS = 4
const MAX_NAME_LENGTH = 64

/** Other headers that hold a SHA-256 signature, which is returned in the form `sha256=…`. */
function otherSignatures(lines: HeaderLines): (readonly [name: string, signature: string])[] {
  return [...lines]
    .filter(([name]) => name.length <= MAX_NAME_LENGTH && /signature|hmac|digest|sha-?256/.test(name))
    .flatMap(([name, [value = '']]) => {
      const signature = normalize(value)
      return signature === undefined ? [] : [[name, signature] as const]
    })
    .slice(0, MAX_OTHERS)
}

/** The signature in the form `sha256=…`. */
function normalize(value: string): string | undefined {
  const [, hex] = HEX.exec(value) ?? []
  if (hex !== undefined) return `sha256=${hex.toLowerCase()}`
  const [, base64] = BASE64.exec(value) ?? []
  return base64 === undefined ? undefined : `sha256=${Buffer.from(base64, 'base64').toString('hex')}`
}

function matchNote(signature: string | undefined, matches: Matches): string {
  if (signature === undefined) return ''
  return matches(signature) ? '; otherwise it is right' : '; it does not match the secret and the body either'
}
