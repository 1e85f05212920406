import { isUtf8 } from 'node:buffer'
import { isJson } from '../json/parse.js'
import { endOfString } from '../json/tokens.js'
import { formPayload } from '../base/form.js'
import type { Steps } from '../base/turns.js'
import { minify } from '../json/minify.js'
import { explainSecret, type Signed } from './explain-secret.js'
import { type Invalid, invalid } from './explanation.js'
import { isForm } from './form.js'
import { type HeaderLines, only } from './headers.js'
import { candidateEncodings, ENCODINGS, writerFor } from './restore/encodings.js'
import { FORMS } from './restore/forms.js'
import { verify } from './signature.js'

interface Mismatch extends Signed {
  readonly lines: HeaderLines
}

/** Why a well-formed signature does not match: another secret, or a changed body. */
export function* explainChange(mismatch: Mismatch): Steps<Invalid> {
  return (
    explainSecret(mismatch) ??
    explainForm(mismatch) ??
    (yield* explainEncoding(mismatch)) ??
    likeliestReason(mismatch)
  )
}

/** Sender and relay disagree on whether the body is a form, or on which part of the form is signed. */
function explainForm({ lines, body, signature, secrets }: Mismatch): Invalid | undefined {
  const payload = formPayload(body)
  if (verify(signature, body, secrets))
    return payload
      ? invalid('form', 'the signature covers the form as sent, as GitHub signs: is the provider right?')
      : invalid('form', 'Content-Type says form, but the body is not a form')
  if (!payload || !verify(signature, payload, secrets)) return undefined
  return isForm(lines)
    ? invalid('form', 'the signature covers the JSON inside the form, as Gitea signs: is the provider right?')
    : invalid('form', 'the body is a form, but Content-Type does not say so')
}

/** A proxy or library parsed the body and wrote it again, which changed the bytes that were signed. */
function* explainEncoding({ lines, body, signature, secrets }: Mismatch): Steps<Invalid | undefined> {
  const isSigned = (text: string | Uint8Array): boolean =>
    verify(signature, Buffer.from(text), secrets) !== undefined
  const payload = payloadOf(lines, body)
  const json = payload ?? body
  if (!isUtf8(json)) return undefined
  const text = Buffer.from(json).toString()
  for (const [original, as] of possibleOriginals(text)) {
    if (isSigned(original))
      return invalid('re_encoded', `the body was re-encoded on its way: it was signed ${as}`)
    yield
  }
  for (const form of formsOf(text)) {
    if (isSigned(form))
      return payload
        ? invalid(
            're_encoded',
            'the body was re-encoded on its way: it was signed as a form in another encoding',
          )
        : invalid('form', 'the body was re-encoded on its way: it was signed as a form')
    yield
  }
  return undefined
}

/** What the text may have been before it was changed. The smallest changes come first. */
function* possibleOriginals(text: string): Generator<readonly [text: string, as: string]> {
  yield [`${text}\n`, 'with a newline at its end']
  yield [text.trimEnd(), 'without white space at its end']
  yield [text.replaceAll('\r\n', '\n'), 'with LF line ends']
  yield [text.replaceAll(/\r?\n/g, '\r\n'), 'with CRLF line ends']
  yield [text.replace(/^\uFEFF/, ''), 'without a byte order mark']
  yield [`\uFEFF${text}`, 'with a byte order mark']
  yield [Buffer.from(text, 'latin1').toString(), 'as UTF-8 but was read as Latin-1']
  if (!isJson(text)) return
  const minified = minify(text, { normalize: true })
  const out = writerFor(minified)
  for (const { encoding, write } of candidateEncodings(minified)) {
    const json = write(out)?.toString()
    if (json === undefined) continue
    yield [json, `as ${encoding.name}`]
    yield [`${json}\n`, `as ${encoding.name}, with a newline at its end`]
  }
}

/** The text as a form. JSON is also tried compact, since programs that send forms write it so. */
function* formsOf(text: string): Generator<Buffer> {
  const compact = isJson(text) ? ENCODINGS.slice(0, 2).map(({ write }) => write(text) ?? text) : []
  for (const json of new Set([text, ...compact])) for (const form of FORMS) yield form(Buffer.from(json))
}

/** The most likely reason if nothing matches. */
function likeliestReason({ lines, body }: Mismatch): Invalid {
  const length = Number(only(lines, 'content-length'))
  if (length > body.byteLength)
    return invalid('truncated', `the body is cut off: only ${body.byteLength} of ${length} bytes arrived`)
  if (isCutOff(Buffer.from(payloadOf(lines, body) ?? body).toString()))
    return invalid(
      'truncated',
      `the body seems cut off: its JSON is incomplete after ${body.byteLength} bytes`,
    )
  return invalid('wrong_secret', 'signed with another secret, or the body was changed on its way')
}

/** Whether the text ends inside an array or an object. */
function isCutOff(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at) - 1
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
  }
  return depth > 0
}

/** The form's payload, if Content-Type says form. JSON text may contain something that looks like a form field. */
function payloadOf(lines: HeaderLines, body: Uint8Array): Uint8Array | undefined {
  return isForm(lines) ? formPayload(body) : undefined
}
