import { RelayError } from '../base/errors.js'
import { firstPayload } from '../http/forms.js'
import { parseJson } from '../json/parse.js'
import { replaceScalar } from '../json/text.js'
import type { Style } from '../schemes/scheme.js'
import { writeJson } from '../webhook/encodings.js'

/** New value for a path in a payload. */
export interface Edit {
  readonly path: readonly (string | number)[]
  readonly value: unknown
  /** Changes nothing else, even if the payload then contradicts itself. */
  readonly only?: boolean
}

const PATH = /^[^\s.[\]=]+(?:\.[^\s.[\]=]+|\[\d{1,6}\])*$/
const STEP = /([^.[\]]+)|\[(\d+)\]/g

type Fields = Record<string, unknown>

/**
 * Splits `https://github.com/octo/demo/issues/1#issuecomment-5` into the repository's address, the number and the rest.
 */
const NUMBERED = /^(https?:\/\/\S+?)\/(?:issues|pulls?)\/(\d+)(?=[/#?.]|$)/
const ADDRESS = /^(?:https?|git|ssh):\/\/\S+$|^git@\S+$/
const SHA = /^[0-9a-f]{40}$/

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

/** Parses `a.b[0]`. Undefined for anything else. */
export function readPath(text: string): Edit['path'] | undefined {
  if (!PATH.test(text)) return undefined
  return [...text.matchAll(STEP)].map(([, name, index]) => name ?? Number(index))
}

export interface BodyKind {
  /** True if the JSON is in the `payload` of a form. */
  readonly form: boolean
  /** Style whose string escapes the JSON has. */
  readonly style: Style
}

/**
 * Applies edits to a body, with their {@link adapt consequences}, and writes it in its own style: compact or indented,
 * with the same white space at its end. Creates missing objects along a path.
 * @throws RelayError `usage` if the body is not JSON, or a path cannot exist in it
 */
export function editBody(body: Uint8Array, edits: readonly Edit[], { form, style }: BodyKind): Uint8Array {
  const bytes = form ? firstPayload(body) : body
  const text = Buffer.from(bytes ?? []).toString()
  const holder = { payload: readBody(bytes) }
  for (const edit of edits) if (!edit.only) adapt(holder.payload, edit)
  for (const edit of edits) put(holder, ['payload', ...edit.path], edit.value)
  const indent = /^\s*[[{]\r?\n([ \t]+)/.exec(text)?.[1] ?? ''
  // Not by a regular expression, which would start again at every white space in the text.
  const end = text.slice(text.trimEnd().length)
  const json = writeJson(style, holder.payload, indent) + end
  if (!form) return Buffer.from(json)
  const fields = new URLSearchParams(Buffer.from(body).toString())
  fields.set('payload', json)
  return Buffer.from(fields.toString())
}

/** A member of the JSON, and the text or number that relay itself sets there. */
export type JsonMember = readonly [path: readonly string[], value: string | number]

/**
 * Sets members of a body, or fields of a form without JSON. Every other byte stays, unless a member is new or in a
 * form; those are written like {@link editBody}.
 */
export function setMembers(body: Uint8Array, members: readonly JsonMember[], kind: BodyKind): Uint8Array {
  return members.reduce((before, [path, value]) => {
    if (kind.form && !firstPayload(before)) {
      const fields = new URLSearchParams(Buffer.from(before).toString())
      fields.set(path.join('.'), String(value))
      return new Uint8Array(Buffer.from(fields.toString()))
    }
    const text = kind.form ? undefined : replaceScalar(Buffer.from(before).toString(), path, value)
    return text === undefined
      ? editBody(before, [{ path, value, only: true }], kind)
      : new Uint8Array(Buffer.from(text))
  }, body)
}

function readValue(text: string): unknown {
  try {
    return parseJson(text)
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

/**
 * Changes everything in a payload that must change with a field: copies of the same object, the number of an issue or
 * pull request, and addresses that contain its number, a repository's name, a login, an id or a commit. The field
 * itself stays, and so does text that people wrote. A path that does not exist has no consequences.
 */
function adapt(payload: unknown, { path, value }: Edit): void {
  const field = String(path.at(-1))
  const owner = at(payload, path.slice(0, -1))
  const old: unknown = Object.getOwnPropertyDescriptor(owner ?? {}, field)?.value
  if (!owner || old === undefined || old === value) return
  const copies = copiesOf(payload, owner)
  if (field === 'number' && typeof old === 'number') renumber(payload, owner, old, value)
  else if (typeof old === 'string' && typeof value === 'string') rename(payload, path, owner, old, value)
  for (const copy of copies) {
    if (typeof old === 'number' && field === 'id')
      mapStrings(copy, (text) => replaceEnd(text, String(old), String(value)))
    if (copy[field] === old) copy[field] = value
  }
}

/**
 * Copies of an object. One with a login has none, because a login belongs to one person in one role: the sender can
 * become another than the owner with the same name.
 */
function copiesOf(payload: unknown, { id, login, url, node_id: node }: Fields): Fields[] {
  if (id === undefined || login !== undefined || (url ?? node) === undefined) return []
  return objectsIn(payload).filter(
    (other) => other['id'] === id && other['url'] === url && other['node_id'] === node,
  )
}

function renumber(payload: unknown, owner: Fields, old: number, value: unknown): void {
  const all = objectsIn(payload)
  const numbered = all.filter((object) => object['number'] === old)
  const places = new Set([owner, ...numbered].flatMap((object) => repositoriesOf(object, old)))
  for (const object of all) {
    const isSame = object['number'] === old && repositoriesOf(object, old).some((place) => places.has(place))
    if (isSame || (object === payload && object['number'] === old)) object['number'] = value
  }
  mapStrings(payload, (text) => {
    const [start = '', place = '', number] = NUMBERED.exec(text) ?? []
    if (number !== String(old) || !places.has(place)) return text
    return `${start.slice(0, -number.length)}${String(value)}${text.slice(start.length)}`
  })
}

/** Addresses of the repository in which this object is the issue or pull request `number`. */
function repositoriesOf(object: Fields, number: number): string[] {
  return Object.values(object).flatMap((text) => {
    const [, place, found] = typeof text === 'string' ? (NUMBERED.exec(text) ?? []) : []
    return place !== undefined && found === String(number) ? [place] : []
  })
}

function rename(payload: unknown, path: Edit['path'], owner: Fields, old: string, value: string): void {
  const field = path.at(-1)
  const repository = field === 'login' && path.at(-2) === 'owner' ? at(payload, path.slice(0, -2)) : owner
  const fullName = repository?.['full_name']
  if (SHA.test(old)) {
    mapStrings(payload, (text) =>
      text.replaceAll(old, value).replaceAll(old.slice(0, 12), value.slice(0, 12)),
    )
  } else if (typeof fullName === 'string' && ['full_name', 'name', 'login'].includes(String(field))) {
    const [login = '', name = ''] = fullName.split('/')
    const full = field === 'full_name' ? value : field === 'name' ? `${login}/${value}` : `${value}/${name}`
    if (full.includes('/')) renameRepository(payload, fullName, full)
  } else if (field === 'login') renameUser(owner, old, value)
}

function renameRepository(payload: unknown, old: string, full: string): void {
  const [oldLogin = ''] = old.split('/')
  const [login = '', name = ''] = full.split('/')
  for (const object of objectsIn(payload).filter((each) => each['full_name'] === old)) {
    object['full_name'] = full
    if ('name' in object) object['name'] = name
    const owner = at(object, ['owner'])
    if (owner) renameUser(owner, oldLogin, login)
  }
  mapStrings(payload, (text) => (ADDRESS.test(text) ? replaceSegments(text, old, full) : text))
}

/** Renames a user, also in `name`, which pushes have, and in Gitea's `username`. */
function renameUser(user: Fields, old: string, login: string): void {
  for (const field of ['login', 'name', 'username']) if (user[field] === old) user[field] = login
  for (const [key, text] of Object.entries(user))
    if (typeof text === 'string' && ADDRESS.test(text)) user[key] = replaceSegments(text, old, login)
}

/** Replaces whole segments of an address's path. */
function replaceSegments(address: string, old: string, value: string): string {
  const pattern = new RegExp(`(?<=[/:])${old.replaceAll(/[^\w/]/g, String.raw`\$&`)}(?=[/#?.{]|$)`, 'g')
  return address.replace(pattern, () => value)
}

/** Replaces the last number of an address. */
function replaceEnd(text: string, old: string, value: string): string {
  return ADDRESS.test(text) && /[/-]\d+$/.test(text) && text.endsWith(old)
    ? text.slice(0, -old.length) + value
    : text
}

/** Replaces every text in a value. */
function mapStrings(value: unknown, change: (text: string) => string): void {
  for (const object of containersIn(value))
    for (const [key, inner] of Object.entries(object))
      if (typeof inner === 'string') object[key] = change(inner)
}

function objectsIn(value: unknown): Fields[] {
  return containersIn(value).filter((each) => !Array.isArray(each))
}

/** Every object and list in a value, including the value itself. */
function containersIn(value: unknown): Fields[] {
  if (!isContainer(value)) return []
  return [value, ...Object.values(value).flatMap(containersIn)]
}

function at(value: unknown, path: Edit['path']): Fields | undefined {
  let found: unknown = value
  for (const step of path)
    found = isContainer(found) ? Object.getOwnPropertyDescriptor(found, step)?.value : undefined
  return isContainer(found) ? found : undefined
}

/** An object, or a list by its indexes. */
function isContainer(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}
