import { RelayError } from '../base/errors.js'
import { didYouMean, suggest } from '../base/text.js'
import { firstPayload } from '../http/forms.js'
import { parseJson, withoutRoot } from '../json/parse.js'
import { readContent } from '../senders/content.js'
import { type BodyKind, changeContent, isContainer, JsonEdit, type MemberPath } from '../senders/members.js'

/** New value for a path in a payload. */
export interface Edit {
  readonly path: MemberPath
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
const NUMBERED =
  /^(?<place>https?:\/\/\S+?)\/(?:issues|pulls?|(?<merge>merge_requests)|work_items)\/(?<number>\d+)(?=[/#?.]|$)/
/** Fields with the number of an issue or pull request: that of GitHub and Gitea, and that of GitLab. */
const NUMBER_FIELDS: ReadonlySet<string> = new Set(['number', 'iid'])
/** Fields with the whole path of a GitLab's project. */
const PROJECT_FIELDS = ['path_with_namespace', 'full_name', 'project_path'] as const
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

/**
 * Says which step of a path is not in a payload. Undefined if all are; the last may be the next place of a list. A body that
 * has no fields is refused where it is changed.
 */
export function missingIn(payload: unknown, path: Edit['path']): string | undefined {
  let at = payload
  let before = 'the payload'
  for (const step of withoutRoot(payload, path)) {
    if (!isContainer(at) || (Array.isArray(at) && step === at.length)) return undefined
    if (!Object.hasOwn(at, step)) {
      const names = Array.isArray(at) ? [] : Object.keys(at)
      return `${before} has no ${step}${didYouMean(String(step), names)}`
    }
    at = Reflect.get(at, step)
    before = String(step)
  }
  return undefined
}

/** A body after edits. */
export interface Edited {
  readonly body: Uint8Array
  /** Paths of the members that changed with those of the edits. */
  readonly also: readonly string[]
}

/**
 * Applies edits to a body, with their {@link adapt consequences}. Creates missing objects along a path. No other byte
 * changes: numbers, escapes and the order of names stay as they were.
 * @throws RelayError `usage` if the body has neither JSON nor fields, or a path cannot exist in it
 */
export function applyEdits(body: Uint8Array, edits: readonly Edit[], { style }: BodyKind): Edited {
  const content = readContent(body)
  if (content.kind === 'fields' || content.kind === 'token') {
    const change = (all: Uint8Array, { path, value }: Edit): Uint8Array =>
      changeContent(
        all,
        withoutRoot(content.value, path),
        (json, inner) => new JsonEdit(json, style).set(inner, value).text,
        value,
      )
    return { body: edits.reduce(change, body), also: [] }
  }
  let also: readonly string[] = []
  const change = (json: string): string => {
    const edit = new JsonEdit(json, style)
    const resolved = edits.map((each) => ({ ...each, path: withoutRoot(edit.payload, each.path) }))
    const own = new Set(resolved.map(({ path }) => pathText(path)))
    const changes = consequences(json, edit.payload, resolved).filter(([path]) => !own.has(pathText(path)))
    edit.replace(changes)
    for (const { path, value } of resolved) edit.set(path, value)
    also = changes.map(([path]) => pathText(path))
    return edit.text
  }
  return { body: changeContent(body, [], change, undefined), also }
}

/** The body after {@link applyEdits}. */
export function editBody(...given: Parameters<typeof applyEdits>): Uint8Array {
  return applyEdits(...given).body
}

type Change = readonly [path: MemberPath, value: unknown]

/** The members that change with those of edits. */
function consequences(json: string, payload: unknown, edits: readonly Edit[]): readonly Change[] {
  const free = edits.filter(({ only }) => only !== true)
  if (free.length === 0) return []
  const adapted = parseJson(json)
  for (const edit of free) adapt(adapted, edit)
  return [...differences(payload, adapted)]
}

/** The members in which two values of the same shape differ. */
function* differences(before: unknown, after: unknown, path: MemberPath = []): Generator<Change> {
  if (before === after) return
  if (!isContainer(before) || !isContainer(after)) {
    yield [path, after]
    return
  }
  const isList = Array.isArray(after)
  for (const [name, value] of Object.entries(after)) {
    const known: unknown = Object.getOwnPropertyDescriptor(before, name)?.value
    yield* differences(known, value, [...path, isList ? Number(name) : name])
  }
}

/** A path that a payload lacks, and the nearest one that it has. */
interface Lacking {
  readonly path: string
  readonly nearest: string | undefined
}

/** Most paths of a payload that are compared: several times the largest of GitHub's. */
const MAX_PATHS = 10_000

/** Finds the paths of edits that a body lacks. {@link applyEdits} creates them. Empty for a body that is not JSON. */
export function lackingPaths(
  body: Uint8Array,
  edits: readonly Edit[],
  { form }: Pick<BodyKind, 'form'>,
): Lacking[] {
  const bytes = form ? firstPayload(body) : body
  let payload: unknown
  try {
    payload = bytes && parseJson(bytes)
  } catch {
    return []
  }
  if (!isContainer(payload)) return []
  const root = payload
  let all: readonly string[] | undefined
  return edits.flatMap(({ path: given }) => {
    const path = withoutRoot(root, given)
    const owner = at(root, path.slice(0, -1))
    // A list may grow by one.
    const isPlace = Array.isArray(owner) && Number(path.at(-1)) === owner.length
    if (isPlace || (owner && Object.hasOwn(owner, String(path.at(-1))))) return []
    all ??= [...pathsIn(root)].filter((each) => NAMEABLE.test(each))
    return [{ path: pathText(path), nearest: nearestPath(path, all) }]
  })
}

/** A path that a message can name. The names of members are the sender's. */
const NAMEABLE = /^[^\p{Cc}\p{Cs}]{1,200}$/u

/** The path that was probably meant: one with the same end, the shortest first, or one that is spelled almost the same. */
function nearestPath(path: Edit['path'], all: readonly string[]): string | undefined {
  const text = pathText(path)
  const [same] = all.filter((each) => each.endsWith(`.${text}`)).toSorted((a, b) => a.length - b.length)
  if (same !== undefined) return same
  const spelled = suggest(text, all)
  const last = String(path.at(-1))
  const ends = all.filter((each) => each === last || each.endsWith(`.${last}`))
  return spelled ?? ends.toSorted((a, b) => a.length - b.length)[0]
}

/** Yields the paths of the members of a value, at most {@link MAX_PATHS}, those near its root first. */
function* pathsIn(value: Fields): Generator<string> {
  let left = MAX_PATHS
  const waiting: (readonly [Edit['path'], Fields])[] = [[[], value]]
  for (let next = waiting.shift(); next && left > 0; next = waiting.shift()) {
    const [at, owner] = next
    const isList = Array.isArray(owner)
    for (const [key, inner] of Object.entries(owner)) {
      if (left-- <= 0) return
      const path = [...at, isList ? Number(key) : key]
      yield pathText(path)
      if (isContainer(inner)) waiting.push([path, inner])
    }
  }
}

function pathText(path: Edit['path']): string {
  return path
    .map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`))
    .join('')
}

function readValue(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
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
  if (NUMBER_FIELDS.has(field) && typeof old === 'number') renumber(payload, owner, field, old, value)
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

function renumber(payload: unknown, owner: Fields, field: string, old: number, value: unknown): void {
  const all = objectsIn(payload)
  const numbered = all.filter((object) => object[field] === old)
  // The owner's own places come first: at a GitLab, an issue and a merge request can have the same number.
  const own = placesOf(owner, old)
  const places = new Set(own.length > 0 ? own : numbered.flatMap((object) => placesOf(object, old)))
  for (const object of all) {
    const isSame = object[field] === old && placesOf(object, old).some((place) => places.has(place))
    if (isSame || (object === payload && object[field] === old)) object[field] = value
  }
  mapStrings(payload, (text) => {
    const found = numberedAddress(text)
    if (!found || found.number !== String(old) || !places.has(found.place)) return text
    const { start, number } = found
    return `${start.slice(0, -number.length)}${String(value)}${text.slice(start.length)}`
  })
}

/** Places in which this object is the issue or pull request `number`. */
function placesOf(object: Fields, number: number): string[] {
  return Object.values(object).flatMap((text) => {
    const found = typeof text === 'string' ? numberedAddress(text) : undefined
    return found?.number === String(number) ? [found.place] : []
  })
}

/**
 * Reads the address of an issue or pull request: its beginning up to the number, and the repository in which that is unique.
 * A GitLab's merge requests have numbers of their own.
 */
function numberedAddress(
  text: string,
): { readonly start: string; readonly place: string; readonly number: string } | undefined {
  const found = NUMBERED.exec(text)
  const { place, merge = '', number } = found?.groups ?? {}
  if (!found || place === undefined || number === undefined) return undefined
  const [start] = found
  return { start, place: `${place} ${merge}`, number }
}

function rename(payload: unknown, path: Edit['path'], owner: Fields, old: string, value: string): void {
  const field = path.at(-1)
  const repository = field === 'login' && path.at(-2) === 'owner' ? at(payload, path.slice(0, -2)) : owner
  const fullName = repository?.['full_name']
  if (SHA.test(old)) {
    mapStrings(payload, (text) =>
      text.replaceAll(old, value).replaceAll(old.slice(0, 12), value.slice(0, 12)),
    )
  } else if (field === 'path_with_namespace') {
    renameProject(payload, old, value)
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

/** Renames a project of a GitLab, and its wiki. */
function renameProject(payload: unknown, old: string, value: string): void {
  for (const suffix of ['', '.wiki']) {
    const [from, to] = [old + suffix, value + suffix]
    for (const object of objectsIn(payload))
      for (const field of PROJECT_FIELDS) if (object[field] === from) object[field] = to
    mapStrings(payload, (text) => (ADDRESS.test(text) ? replaceSegments(text, from, to) : text))
  }
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
