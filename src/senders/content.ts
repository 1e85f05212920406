import { isUtf8 } from 'node:buffer'
import { firstPayload, formFields, isFormBody } from '../http/forms.js'
import { boundaryOf, multipartFields } from '../http/multipart.js'
import { parseJson } from '../json/parse.js'
import { formatOf } from './format.js'
import { embeddedJson, readToken, type TokenBody } from './token-body.js'

/**
 * Content of a body, from its bytes alone: no signature covers Content-Type, and JSON that is read as a form could appear
 * to have fields.
 */
export type Content =
  | JsonContent
  | {
      /**
       * A form, in one of its two encodings, that is not one of JSON. `value` has its fields by name, the last one of a
       * name: texts, or the parsed value of a JSON object or list.
       */
      readonly kind: 'fields'
      readonly value: Readonly<Record<string, unknown>>
    }
  | {
      /** A token (JWT) as a whole. `value` has its claims. */
      readonly kind: 'token'
      readonly value: TokenBody
    }
  | {
      /** Anything else: text in UTF-8, or other bytes. */
      readonly kind: 'text' | 'bytes'
      readonly value: undefined
      /** True for a form whose first field, `payload`, is no JSON. */
      readonly isForm: boolean
      /** Its format, to follow the words "the body is": `gzip`. Undefined for damaged JSON, or any text. */
      readonly format: string | undefined
      /** Reason why it cannot be parsed as JSON, to follow the words "the body is". */
      readonly why: string
    }

/**
 * JSON, as the whole body or in the first field of a form, `payload`. A class, since V8 keeps the getter of an object
 * literal, and with it the body, until its next full collection.
 */
class JsonContent {
  readonly kind = 'json'
  readonly value: unknown
  readonly isForm: boolean
  readonly #json: Uint8Array

  constructor(value: unknown, json: Uint8Array, isForm: boolean) {
    this.value = value
    this.#json = json
    this.isForm = isForm
  }

  /** The JSON as received. Decoded on request: intake needs the value alone, of up to 25 MiB. */
  get text(): string {
    return new TextDecoder().decode(this.#json)
  }
}

/** Reads a body. Does not throw: a body that is neither JSON nor a form is text or bytes. */
export function readContent(body: Uint8Array): Content {
  const isForm = isFormBody(body)
  const json = isForm ? firstPayload(body) : body
  if (!json) return { kind: 'fields', value: readFields(formFields(body)) }
  const fields = isForm ? undefined : multipartFields(body)
  if (fields) return { kind: 'fields', value: readFields(fields) }
  const token = isForm ? undefined : readToken(body)
  if (token) return { kind: 'token', value: token }
  try {
    return new JsonContent(parseJson(json), json, isForm)
  } catch (error) {
    const format = isForm ? undefined : formatOf(body)
    const why = error instanceof SyntaxError ? error.message : 'not JSON'
    return { kind: isUtf8(body) ? 'text' : 'bytes', value: undefined, isForm, format, why }
  }
}

/** Fields of a form. Fields with a JSON object or list are parsed, since senders write their events there. */
function readFields(fields: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, readField(name, text)]))
}

function readField(name: string, text: string): unknown {
  // One that is not the first proves nothing where the payload alone is signed.
  return name === 'payload' ? text : (embeddedJson(text) ?? text)
}

/** Bytes of the JSON in a body, which are not parsed; the body itself if it has none. */
export function payloadBytes(body: Uint8Array): Uint8Array {
  return (isFormBody(body) && firstPayload(body)) || body
}

/**
 * Names the format of a body that is not JSON, to follow the words "the body is". Undefined for JSON, also in a form, and for damaged
 * JSON. Parses nothing.
 */
export function bodyFormat(body: Uint8Array): string | undefined {
  if (isFormBody(body)) return firstPayload(body) ? undefined : 'a form'
  if (boundaryOf(body) !== undefined) return 'a multipart form'
  return readToken(body) ? 'a token (JWT)' : formatOf(body)
}

/** Name of a body's format, if neither members nor fields can be read from it. */
export function unreadableFormat(body: Uint8Array): string | undefined {
  return isFormBody(body) || boundaryOf(body) !== undefined ? undefined : formatOf(body)
}
