import { RelayError } from '../base/errors.js'
import { adapt, type Change } from './adapt.js'
import { formPayload } from '../base/form.js'
import { parseJson } from '../json/parse.js'
import type { Style } from '../codehost/host.js'
import { writeJson } from '../webhook/encodings.js'

export interface Edit extends Change {
  /** Change nothing else, though the payload then contradicts itself. */
  readonly only?: boolean
}

const PATH = /^[^\s.[\]=]+(?:\.[^\s.[\]=]+|\[\d{1,6}\])*$/
const STEP = /([^.[\]]+)|\[(\d+)\]/g

/**
 * Parses `a.b[0]=value`. The value is parsed as JSON if possible; otherwise it is text.
 * @throws RelayError `usage`
 */
export function parseEdit(text: string, { only = false } = {}): Edit {
  const equals = text.indexOf('=')
  const path = equals === -1 ? undefined : readPath(text.slice(0, equals))
  const flag = only ? '--set-only' : '--set'
  if (!path) throw new RelayError('usage', `${flag}: must be path=value, for example pull_request.number=7`)
  return { path, value: readValue(text.slice(equals + 1)), ...(only && { only }) }
}

/** Parses `a.b[0]`; undefined for anything else. */
export function readPath(text: string): Edit['path'] | undefined {
  if (!PATH.test(text)) return undefined
  return [...text.matchAll(STEP)].map(([, name, index]) => name ?? Number(index))
}

export interface BodyKind {
  /** Whether the JSON is in the `payload` of a form. */
  readonly form: boolean
  /** Whose escapes its strings have. */
  readonly style: Style
}

/**
 * Applies the edits to a body, with their {@link adapt consequences}, and writes it in its own style: compact or indented, with the same white space at its end. Creates
 * missing objects on the way to a place.
 * @throws RelayError `usage` if the body is not JSON, or a place cannot exist in it.
 */
export function editBody(body: Uint8Array, edits: readonly Edit[], { form, style }: BodyKind): Uint8Array {
  const bytes = form ? formPayload(body) : body
  const text = Buffer.from(bytes ?? []).toString()
  const holder = { payload: readBody(bytes) }
  for (const edit of edits) if (!edit.only) adapt(holder.payload, edit)
  for (const edit of edits) put(holder, ['payload', ...edit.path], edit.value)
  const indent = /^\s*[[{]\r?\n([ \t]+)/.exec(text)?.[1] ?? ''
  const end = /\s*$/.exec(text)?.[0] ?? ''
  const json = writeJson(style, holder.payload, indent) + end
  if (!form) return Buffer.from(json)
  const fields = new URLSearchParams(Buffer.from(body).toString())
  fields.set('payload', json)
  return Buffer.from(fields.toString())
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function readBody(bytes: Uint8Array | undefined): unknown {
  try {
    if (bytes) return parseJson(bytes)
  } catch {
    // Reported below.
  }
  throw new RelayError('usage', 'Cannot set a field: the body is not JSON')
}

function put(target: object, path: readonly (string | number)[], value: unknown): void {
  const [step = '', ...rest] = path
  if (Array.isArray(target) && !(Number(step) <= target.length))
    throw new RelayError('usage', `Cannot set a field: a list of ${target.length} has no place ${step}`)
  if (rest.length === 0) return define(target, step, value)
  const inner: unknown = Object.getOwnPropertyDescriptor(target, step)?.value ?? empty(rest[0])
  if (typeof inner !== 'object' || inner === null)
    throw new RelayError('usage', `Cannot set a field: ${step} is neither an object nor a list`)
  define(target, step, inner)
  put(inner, rest, value)
}

function empty(step: string | number | undefined): object {
  return typeof step === 'number' ? [] : {}
}

/** Not by assignment, which would set the prototype for `__proto__`. */
function define(target: object, step: string | number, value: unknown): void {
  Object.defineProperty(target, step, { value, enumerable: true, writable: true, configurable: true })
}
