import { RelayError } from '../base/errors.js'
import { formFields, withFormField } from '../http/forms.js'
import { multipartFields, withMultipartField } from '../http/multipart.js'
import { ownMember, parseJson } from '../json/parse.js'
import { addMember, type JsonPath, replaceScalar, replaceValues } from '../json/text.js'
import { readContent } from './content.js'
import { writeJson } from './encodings.js'
import type { Style } from './scheme.js'
import { claimsText, embeddedJson, TokenBody, withClaims } from './token-body.js'

export type MemberPath = JsonPath

/** How a body is written. */
export interface BodyKind {
  /** True if it is a form, with the JSON in `payload` or with fields, in one of the two encodings. */
  readonly form: boolean
  /** Style whose string escapes the JSON has. */
  readonly style: Style
}

/** A member of the JSON, and the text or number that relay itself sets there. */
export type JsonMember = readonly [path: readonly string[], value: string | number]

/**
 * Sets members of a body, or fields of a form without JSON. Every other byte stays. An empty path is the body itself.
 * @throws RelayError `usage` as {@link changeContent}
 */
export function setMembers(body: Uint8Array, members: readonly JsonMember[], kind: BodyKind): Uint8Array {
  return members.reduce((before, [path, value]) => setMember(before, path, value, kind), body)
}

function setMember(
  body: Uint8Array,
  path: readonly string[],
  value: string | number,
  { style }: BodyKind,
): Uint8Array {
  if (path.length === 0) return Buffer.from(String(value))
  return changeContent(
    body,
    path,
    (text, inner) => {
      // A member that is present can be set without parsing.
      const same = replaceScalar(text, inner.map(String), value)
      return same ?? new JsonEdit(text, style).set(inner, value).text
    },
    value,
  )
}

/**
 * Changes the JSON of a body, or in a form without JSON the field that a path begins with: its text, or the JSON in it.
 * @param change given the JSON, and the path in it
 * @param value new text of a field that the path leads to
 * @throws RelayError `usage` for a body that has no JSON and no fields; what `change` throws
 */
export function changeContent(
  body: Uint8Array,
  path: MemberPath,
  change: (json: string, path: MemberPath) => string,
  value: unknown,
): Uint8Array {
  const content = readContent(body)
  if (content.kind === 'json') {
    const changed = change(content.text, path)
    return content.isForm ? withFormField(body, 'payload', changed) : Buffer.from(changed)
  }
  if (content.kind === 'token') {
    const token = TokenBody.textOf(content.value) ?? ''
    return Buffer.from(withClaims(token, changeEmbedded(claimsText(token), path, change)))
  }
  const [name = '', ...rest] = path
  if (content.kind === 'fields') {
    const multipart = multipartFields(body)
    const { [String(name)]: known } = multipart ?? formFields(body)
    const json = rest.length === 0 ? undefined : (known ?? '{}')
    const text = json === undefined ? fieldText(value) : change(json, rest)
    return withMultipartField(body, String(name), text) ?? withFormField(body, String(name), text)
  }
  throw new RelayError('usage', `Cannot set a field: the body is ${content.format ?? 'not JSON'}`)
}

/** Changes JSON at a path that may lead through texts which are JSON themselves. */
function changeEmbedded(
  json: string,
  path: MemberPath,
  change: (json: string, path: MemberPath) => string,
): string {
  const payload = parsed(json)
  for (let length = 1; length < path.length; length++) {
    const [owner, rest] = [path.slice(0, length), path.slice(length)]
    const text = memberAt(payload, owner)
    if (typeof text !== 'string' || embeddedJson(text) === undefined) continue
    return new JsonEdit(json, 'compact').set(owner, changeEmbedded(text, rest, change)).text
  }
  return change(json, path)
}

function fieldText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
}

/** JSON text that is changed member by member, in its own style. Every other byte stays. */
export class JsonEdit {
  #text: string
  readonly #style: Style
  /** Indentation of one level; empty for JSON in one line. */
  readonly #unit: string
  readonly #holder: { payload: unknown }

  /** @throws RelayError `usage` if the text is not JSON */
  constructor(text: string, style: Style) {
    this.#text = text
    this.#style = style
    this.#unit = /^\s*[[{]\r?\n([ \t]+)/.exec(text)?.[1] ?? ''
    this.#holder = { payload: parsed(text) }
  }

  get text(): string {
    return this.#text
  }

  get payload(): unknown {
    return this.#holder.payload
  }

  /** Replaces values that are present. */
  replace(changes: readonly (readonly [path: MemberPath, value: unknown])[]): void {
    const written = changes.map(([path, value]) => [path, this.#write(value)] as const)
    this.#text = replaceValues(this.#text, written) ?? this.#text
    for (const [path, value] of changes) putMember(this.#holder, path, value)
  }

  /**
   * Sets a member. Creates missing objects along the path. @throws RelayError `usage` if the path cannot exist in the
   * payload
   */
  set(path: MemberPath, value: unknown): this {
    const known = knownSteps(this.payload, path)
    const owner = path.slice(0, known)
    const isAdded = known < path.length && isContainer(memberAt(this.payload, owner))
    putMember(this.#holder, path, value)
    const written = (at: MemberPath): string => this.#write(memberAt(this.payload, at))
    const [step = ''] = path.slice(known)
    const changed = isAdded
      ? addMember(this.#text, owner, [step, written([...owner, step])], this.#unit)
      : replaceValues(this.#text, [[owner, written(owner)]])
    this.#text = changed ?? this.#write(this.payload)
    return this
  }

  #write(value: unknown): string {
    return writeJson(this.#style, value, this.#unit)
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    throw new RelayError('usage', 'Cannot set a field: the body is not JSON')
  }
}

/** Number of the steps of a path that a payload has. */
function knownSteps(payload: unknown, path: MemberPath): number {
  let value = payload
  const missing = path.findIndex((step) => {
    if (!isContainer(value) || !Object.hasOwn(value, step)) return true
    value = memberAt(value, [step])
    return false
  })
  return missing === -1 ? path.length : missing
}

/** Reads the value at a path. Undefined if there is none. */
export function memberAt(payload: unknown, path: MemberPath): unknown {
  return path.reduce<unknown>((value, step) => ownMember(value, String(step)), payload)
}

/** An object, or a list by its indexes. */
export function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/**
 * Sets a member of the payload. Creates missing objects along the path.
 * @throws RelayError `usage` if the path cannot exist in it
 */
function putMember(holder: { payload: unknown }, path: MemberPath, value: unknown): void {
  put(holder, ['payload', ...path], value)
}

function put(target: object, path: MemberPath, value: unknown): void {
  const [step = '', ...rest] = path
  if (Array.isArray(target) && !(Number(step) <= target.length))
    throw new RelayError('usage', `Cannot set a field: a list of ${target.length} has no place ${step}`)
  if (rest.length === 0) return define(target, step, value)
  const inner: unknown =
    Object.getOwnPropertyDescriptor(target, step)?.value ?? (typeof rest[0] === 'number' ? [] : {})
  if (typeof inner !== 'object' || inner === null)
    throw new RelayError('usage', `Cannot set a field: ${step} is neither an object nor a list`)
  define(target, step, inner)
  put(inner, rest, value)
}

/** Defines a property. An assignment would set the prototype for `__proto__`. */
function define(target: object, step: string | number, value: unknown): void {
  Object.defineProperty(target, step, { value, enumerable: true, writable: true, configurable: true })
}
