import { isUtf8 } from 'node:buffer'
import { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { ENCODINGS, FORMS } from './encodings.js'
import { type Invalid, invalid } from './explanation.js'
import { formPayload, isForm } from './form.js'
import { type HeaderLines, only } from './headers.js'
import { parseJson } from './json.js'
import { verify } from './signature.js'

interface Mismatch {
  readonly lines: HeaderLines
  readonly body: Uint8Array
  /** What should have been signed; undefined where the body is no form but is called one. */
  readonly signed: Uint8Array | undefined
  readonly signature: string | undefined
  readonly secrets: WebhookSecrets
}

/** What makes a well-formed signature not fit: another secret, or another body. */
export function explainChange(mismatch: Mismatch): Invalid {
  return explainSecret(mismatch) ?? explainForm(mismatch) ?? explainEncoding(mismatch) ?? unproved(mismatch)
}

/** White space that gets into a secret where it is copied, or is taken off where it is kept. */
function explainSecret({ body, signed = body, signature, secrets }: Mismatch): Invalid | undefined {
  const { current, previous = current } = secrets
  for (const secret of new Set([current, previous])) {
    const text = secret.reveal()
    const trimmed = text.trimEnd()
    if (trimmed !== text && fits(signature, signed, trimmed))
      return invalid('secret_white_space', "relay's secret has white space at its end, the sender's has not")
    for (const [end, what] of WHITE_SPACE)
      if (fits(signature, signed, trimmed + end))
        return invalid('secret_white_space', `the sender's secret has ${what} at its end, relay's has not`)
  }
  return undefined
}

const WHITE_SPACE = [
  ['\n', 'a newline'],
  ['\r\n', 'a carriage return and newline'],
  [' ', 'a space'],
] as const

function fits(signature: string | undefined, bytes: Uint8Array, secret: string): boolean {
  return verify(signature, bytes, { current: new Secret(secret) }) !== undefined
}

/** One side took the body for a form, or its signature to cover the form, and the other did not. */
function explainForm({ lines, body, signature, secrets }: Mismatch): Invalid | undefined {
  if (verify(signature, body, secrets))
    return invalid(
      'form',
      formPayload(body)
        ? 'the signature covers the form as sent, as GitHub signs: is the provider right?'
        : 'Content-Type says form, but the body is none',
    )
  const payload = formPayload(body)
  if (!payload || !verify(signature, payload, secrets)) return undefined
  return invalid(
    'form',
    isForm(lines)
      ? 'the signature covers the JSON inside the form, as Gitea signs: is the provider right?'
      : 'the body is a form, but Content-Type does not say so',
  )
}

/** A proxy or library that reads the JSON and writes it again changes the bytes, and with them the signature. */
function explainEncoding({ body, signature, secrets }: Mismatch): Invalid | undefined {
  const isIt = (text: string): boolean => verify(signature, Buffer.from(text), secrets) !== undefined
  const text = textOf(formPayload(body) ?? body)
  if (text === undefined) return undefined
  for (const [other, what] of otherEnds(text))
    if (isIt(other)) return invalid('re_encoded', `the body was changed on its way: it was signed ${what}`)
  if (!isJson(text)) return undefined
  for (const encoding of ENCODINGS) {
    const json = encoding.write(text)
    if (isIt(json) || isIt(`${json}\n`))
      return invalid('re_encoded', `the body was re-encoded on its way: it was signed as ${encoding.name}`)
  }
  return signedAsForm(text, isIt)
    ? invalid('form', 'the body was re-encoded on its way: it was signed as a form')
    : undefined
}

/** Only of compact JSON: what sends forms writes that. */
function signedAsForm(text: string, isIt: (text: string) => boolean): boolean {
  return [text, ...ENCODINGS.slice(0, 2).map((encoding) => encoding.write(text))].some((json) =>
    FORMS.some((form) => isIt(form(json))),
  )
}

/** The text with the line ends, or the byte order mark, that it may have lost or got. */
function otherEnds(text: string): (readonly [text: string, what: string])[] {
  return [
    [`${text}\n`, 'with a newline at its end'],
    [text.trimEnd(), 'without white space at its end'],
    [text.replaceAll('\r\n', '\n'), 'with LF line ends'],
    [text.replaceAll(/\r?\n/g, '\r\n'), 'with CRLF line ends'],
    [text.replace(/^\uFEFF/, ''), 'without a byte order mark'],
    [`\uFEFF${text}`, 'with a byte order mark'],
  ]
}

function unproved({ lines, body }: Mismatch): Invalid {
  const length = Number(only(lines, 'content-length'))
  if (length > body.byteLength)
    return invalid('truncated', `the body is cut off: ${body.byteLength} of ${length} bytes are there`)
  return invalid('wrong_secret', 'signed with another secret, or the body was changed on its way')
}

function textOf(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) ? Buffer.from(bytes).toString() : undefined
}

function isJson(text: string): boolean {
  try {
    parseJson(Buffer.from(text))
    return true
  } catch {
    return false
  }
}
