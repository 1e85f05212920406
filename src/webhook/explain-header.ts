import { type Invalid, invalid } from './explanation.js'
import type { HeaderLines } from './headers.js'
import { SIGNATURE_HEADER } from './signature.js'

const HEADER = 'X-Hub-Signature-256'
const WANTED = `${HEADER}: sha256=<64 lower-case hex digits>`
/** A SHA-256 in hexadecimal, however it is introduced and spelled. */
const DIGEST = /^(?:sha256=|sha-256=)?([0-9a-f]{64})$/i

/**
 * What is wrong with where and how a request carries its signature; undefined when it is there as it should be. `fits`
 * says whether a signature in the proper form would have been right.
 */
export function explainHeader(lines: HeaderLines, fits: (signature: string) => boolean): Invalid | undefined {
  const given = lines.get(SIGNATURE_HEADER)
  if (!given) return explainAbsence(lines, fits)
  const [signature = '', second] = given
  if (second !== undefined) return invalid('repeated_signature', `${HEADER} is given more than once`)
  if (/^(?:sha256=)?\s*$/i.test(signature)) return EMPTY
  const why = misspelling(signature)
  if (why === undefined) return undefined
  const proper = DIGEST.exec(signature.trim())?.[1]
  return invalid('malformed_signature', `${why}, expected ${WANTED}${verdict(proper, fits)}`)
}

const EMPTY = invalid('empty_signature', 'the signature is empty: the webhook has no secret at the code host')

function misspelling(signature: string): string | undefined {
  if (/^sha256=[0-9a-f]{64}$/.test(signature)) return undefined
  if (/^sha1=/i.test(signature)) return `${HEADER} holds a SHA-1 signature`
  if (/^[0-9a-f]{64}$/i.test(signature)) return `${HEADER} lacks the prefix sha256=`
  if (/^sha256=[0-9a-f]{64}$/i.test(signature)) return `${HEADER} is in upper case`
  if (/^(?:sha256=)?[A-Za-z0-9+/_-]{43}=?$/.test(signature)) return `${HEADER} is in base64`
  return `${HEADER} is malformed`
}

/** Where else the signature may be. */
function explainAbsence(lines: HeaderLines, fits: (signature: string) => boolean): Invalid {
  for (const [name, [value = '']] of lines) {
    const digest = /signature|hmac|digest|sha256/.test(name) ? DIGEST.exec(value)?.[1] : undefined
    if (digest === undefined) continue
    const hint = `the signature is in ${spelled(name)}, expected ${WANTED}${verdict(digest, fits)}`
    return invalid('wrong_header', hint)
  }
  const legacy = lines.get('x-hub-signature')?.[0] ?? ''
  if (/^sha1=[0-9a-f]{40}$/i.test(legacy))
    return invalid('only_sha1', `there is only a SHA-1 signature (X-Hub-Signature), expected ${WANTED}`)
  if (lines.get('x-gitea-signature')?.[0] === '') return EMPTY
  return invalid('no_signature', `there is no ${HEADER}: has the webhook a secret at the code host?`)
}

function verdict(digest: string | undefined, fits: (signature: string) => boolean): string {
  if (digest === undefined) return ''
  return fits(`sha256=${digest.toLowerCase()}`)
    ? '; otherwise it is right'
    : '; and it does not fit the secret and the body either'
}

/** Names are looked up in lower case; a person knows them as `X-Gitea-Signature`. */
function spelled(name: string): string {
  return name.replaceAll(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
