import { isUtf8 } from 'node:buffer'
import { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { ENCODINGS, FORMS, spellings } from './encodings.js'
import { type Invalid, invalid } from './explanation.js'
import { formPayload, isForm } from './form.js'
import { type HeaderLines, only } from './headers.js'
import { endOfString, isJson } from './json.js'
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
        return invalid('secret_white_space', `the sender's secret ends in ${what}, relay's does not`)
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
  const payload = formPayload(body)
  if (verify(signature, body, secrets))
    return payload
      ? invalid('form', 'the signature covers the form as sent, as GitHub signs: is the provider right?')
      : invalid('form', 'Content-Type says form, but the body is none')
  if (!payload || !verify(signature, payload, secrets)) return undefined
  return isForm(lines)
    ? invalid('form', 'the signature covers the JSON inside the form, as Gitea signs: is the provider right?')
    : invalid('form', 'the body is a form, but Content-Type does not say so')
}

/** A proxy or library that reads the body and writes it again changes the bytes, and with them the signature. */
function explainEncoding({ lines, body, signature, secrets }: Mismatch): Invalid | undefined {
  const isIt = (text: string): boolean => verify(signature, Buffer.from(text), secrets) !== undefined
  const payload = payloadOf(lines, body)
  const json = payload ?? body
  if (!isUtf8(json)) return undefined
  const text = Buffer.from(json).toString()
  for (const [other, as] of otherTexts(text))
    if (isIt(other)) return invalid('re_encoded', `the body was re-encoded on its way: it was signed ${as}`)
  if (!formsOf(text).some(isIt)) return undefined
  return payload
    ? invalid('re_encoded', 'the body was re-encoded on its way: it was signed as a form written otherwise')
    : invalid('form', 'the body was re-encoded on its way: it was signed as a form')
}

/** As the text may have been before, from the least change to the largest. */
function* otherTexts(text: string): Generator<readonly [text: string, as: string]> {
  yield [`${text}\n`, 'with a newline at its end']
  yield [text.trimEnd(), 'without white space at its end']
  yield [text.replaceAll('\r\n', '\n'), 'with LF line ends']
  yield [text.replaceAll(/\r?\n/g, '\r\n'), 'with CRLF line ends']
  yield [text.replace(/^\uFEFF/, ''), 'without a byte order mark']
  yield [`\uFEFF${text}`, 'with a byte order mark']
  yield [Buffer.from(text, 'latin1').toString(), 'as UTF-8, and was read as Latin-1']
  if (!isJson(text)) return
  for (const [id, json] of spellings(text)) {
    const name = ENCODINGS.find((encoding) => encoding.id === id)?.name
    yield [json, `as ${name}`]
    yield [`${json}\n`, `as ${name}, with a newline at its end`]
  }
}

/** Only of compact JSON: what sends forms writes that. */
function formsOf(text: string): string[] {
  const compact = isJson(text) ? ENCODINGS.slice(0, 2).map(({ write }) => write(text) ?? text) : []
  return [...new Set([text, ...compact])].flatMap((json) => FORMS.map((form) => form(json)))
}

/** Nothing fits. What is most likely then. */
function unproved({ lines, body }: Mismatch): Invalid {
  const length = Number(only(lines, 'content-length'))
  if (length > body.byteLength)
    return invalid('truncated', `the body is cut off: ${body.byteLength} of ${length} bytes are there`)
  if (isCutOff(Buffer.from(payloadOf(lines, body) ?? body).toString()))
    return invalid('truncated', `the body seems cut off: its JSON does not end in ${body.byteLength} bytes`)
  return invalid('wrong_secret', 'signed with another secret, or the body was changed on its way')
}

/** Whether an array or an object is still open where the text ends. */
function isCutOff(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at)
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
  }
  return depth > 0
}

/** Of a body that is called a form and is one. In JSON, too, there may be something like a field. */
function payloadOf(lines: HeaderLines, body: Uint8Array): Uint8Array | undefined {
  return isForm(lines) ? formPayload(body) : undefined
}
