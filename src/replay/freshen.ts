import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { Fixture } from './fixture.js'

/** When the packaged examples happened: noon UTC on 31 January 2026, in milliseconds since 1970-01-01. */
export const RECORDED_AT = Date.UTC(2026, 0, 31, 12)
/** Largest distance of an example's time from {@link RECORDED_AT}: nothing else in an example is a number so near. */
const WINDOW = 2 * 365 * 86_400_000

const UUID = /^\{?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\}?$/i
/** Names of members and headers that hold an id. */
const ID_NAME =
  /(?:^|[_-])(?:[iI][dD]|u?uid|U?UID|Uuid|guid|sid|gid|key|hash|sha)s?$|(?:I[dD]|Uu?id|UUID|Sid|Key|Hash)s?$/
/** An id that says what it is of, as `in_1Sv0a0LkdIwHu7ix`. It is one under any name. */
const TAGGED = /^[a-z]{1,12}_(?:[a-z]{2,8}_)?(?=[A-Za-z\d]*\d)[A-Za-z\d]{12,}$/
/** An id that was made, in place of a name or a small number that somebody chose. */
const MADE = /^(?=.*\d)(?=.*[A-Za-z\d]{5})[\w.:=+{}-]{5,200}$/
/**
 * Names of members that were there before the event: people, places and settings. Their ids stay, as their dates do in the examples of a code
 * host.
 */
const LASTING = new Set(
  `account actor agent app application assignee assigner author avatar base board bot business calendar campaign
  category channel chat client company connection contact creator customer database destination endpoint
  enterprise environment form from grant guild hook host instance integration issuetype label list location media
  member merchant model operator org organization owner page participant phone plan policy portal price priority
  product project publisher queue recipient reporter repository requester resolution seller sender service shop
  short site source space state status store team tenant tier to token type updater user webhook workflow
  workspace`.split(/\s+/),
)

/**
 * Makes a packaged example happen at `now`. Its times keep their distances. What the sender creates for each event or
 * request gets new ids; an id that occurs twice gets the same new one. Ids of objects that existed before stay.
 * @param now milliseconds since 1970-01-01 UTC
 */
export function freshened(example: Fixture, now: number): Fixture {
  const { delivery, headers, payload } = example
  const renewed = new Renewal(example, now - RECORDED_AT)
  const lines = Object.entries(headers).map(([name, value]) => [
    name,
    typeof value === 'string' ? renewed.text(value) : value.map((each) => renewed.text(each)),
  ])
  return {
    ...example,
    delivery: renewed.text(delivery),
    headers: Object.fromEntries(lines),
    ...(payload !== undefined && {
      payload: isList(payload) ? renewed.list(payload) : renewed.members(payload),
    }),
  }
}

class Renewal {
  readonly #shift: number
  readonly #ids = new Map<string, string>()
  readonly #pattern: RegExp
  /** Texts of times that are ids, too, as Slack's messages have. */
  readonly #moments = new Map<string, string>()

  constructor({ delivery, headers, payload }: Fixture, shift: number) {
    this.#shift = shift
    const ids = new Set([delivery])
    const tagged = new Set<string>()
    const lasting = new Set<string>()
    for (const [name, value] of Object.entries(headers))
      // The webhook that a header names is the request.
      if (ID_NAME.test(name) && !isLasting([name.replace(/webhook/i, 'request')]))
        for (const each of [value].flat()) if (isMade(each)) ids.add(each)
    for (const [path, value] of scalarsOf(payload)) {
      const text = String(value)
      const isId = ID_NAME.test(path.at(-1) ?? '') && isMade(text)
      if (!isId && !TAGGED.test(text)) continue
      if (isLasting(path)) lasting.add(text)
      else (isId ? ids : tagged).add(text)
    }
    for (const text of tagged) if (!lasting.has(text)) ids.add(text)
    for (const id of ids) this.#ids.set(id, another(id))
    // An id can begin with another one, as that of a page's post does.
    for (const [id, fresh] of this.#ids)
      for (const [first, other] of this.#ids)
        if (first !== id && id.startsWith(first) && fresh.startsWith(first))
          this.#ids.set(id, other + fresh.slice(first.length))
    const longestFirst = [...ids].toSorted((one, other) => other.length - one.length)
    const any = longestFirst.map((id) => id.replaceAll(/[^\w-]/g, String.raw`\$&`)).join('|')
    this.#pattern = new RegExp(`(?<![A-Za-z\\d])(?:${any})(?![A-Za-z\\d])`, 'g')
  }

  list(values: readonly unknown[]): unknown[] {
    return values.map((each) => this.#value(each))
  }

  members(value: object): Record<string, unknown> {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#value(each)]))
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') return this.#number(value)
    if (isList(value)) return this.list(value)
    return typeof value === 'object' && value !== null ? this.members(value) : value
  }

  text(text: string): string {
    const inner = embedded(text)
    if (inner !== undefined) return JSON.stringify(this.#value(inner))
    return this.#ids.get(text) ?? this.#moment(text) ?? this.#withIds(text)
  }

  #withIds(text: string): string {
    return text.replace(this.#pattern, (id) => this.#ids.get(id) ?? id)
  }

  #number(value: number): number {
    const id = this.#ids.get(String(value))
    if (id !== undefined) return Number(id)
    for (const unit of [1, 1000])
      if (isNear(value * unit))
        return Number.isInteger(value)
          ? Math.floor((value * unit + this.#shift) / unit)
          : value + Math.floor(this.#shift / unit)
    return value
  }

  #moment(text: string): string | undefined {
    const [, seconds, fraction] = /^(\d{10})(\.\d{6})?$/.exec(text) ?? []
    if (seconds !== undefined && isNear(Number(seconds) * 1000)) {
      const at = String(this.#number(Number(seconds)))
      const known = this.#moments.get(text)
      const moment = known ?? (fraction === undefined ? at : `${at}.${digits(6)}`)
      this.#moments.set(text, moment)
      return moment
    }
    if (/^\d{13}$/.test(text) && isNear(Number(text))) return String(this.#number(Number(text)))
    return shiftedDate(text, this.#shift)
  }
}

/** Texts and numbers of a value, with the names that lead to them. Those of a list have its name. */
function* scalarsOf(
  value: unknown,
  path: readonly string[] = [],
): Generator<[readonly string[], string | number]> {
  const inner = typeof value === 'string' ? embedded(value) : undefined
  if (inner !== undefined) yield* scalarsOf(inner, path)
  else if (typeof value === 'string' || typeof value === 'number') yield [path, value]
  else if (isList(value)) for (const each of value) yield* scalarsOf(each, path)
  else if (typeof value === 'object' && value !== null)
    for (const [name, each] of Object.entries(value)) yield* scalarsOf(each, [...path, name])
}

/** The object or list in a text that is compact JSON, as some senders put into a field. Undefined for any other text. */
function embedded(text: string): unknown {
  if (!/^[[{]/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === text ? value : undefined
  } catch {
    return undefined
  }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

function isMade(text: string): boolean {
  return UUID.test(text) || (MADE.test(text) && shiftedDate(text, 0) === undefined)
}

/** True if a name on the path is that of something lasting: `customer`, `teamId`, `source_project_id`, `labels`. */
function isLasting(path: readonly string[]): boolean {
  return path.some((name) => {
    const words = name
      .replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '_')
      .toLowerCase()
      .split(/[_-]/)
    if (/^(?:id|u?uid|guid|sid|gid|key|hash|sha)s?$/.test(words.at(-1) ?? '')) words.pop()
    const last = words.at(-1) ?? ''
    return LASTING.has(last) || LASTING.has(last.replace(/s$/, ''))
  })
}

/** Another id of the same form: what stands before it stays, and each character is of the same kind. */
function another(id: string): string {
  if (UUID.test(id)) return id.replace(/[\da-f-]{36}/i, () => randomUUID())
  const [, start = '', rest = ''] =
    /^((?:.*[_.:-](?=.{4})|0x|[A-Z][A-Za-z]?(?=\w{6,}$))?)(.*)$/.exec(id) ?? []
  if (UUID.test(id.slice(-36))) return id.slice(0, -36) + randomUUID()
  if (/^[\da-f]{16,}$/.test(rest))
    return start + randomBytes(rest.length).toString('hex').slice(0, rest.length)
  // The first digit stays, so that a number has as many, and is no larger than JSON allows.
  const [first = '', ...others] = rest
  return start + first + others.map(sameKind).join('')
}

function sameKind(char: string): string {
  if (/\d/.test(char)) return String(randomInt(10))
  const letter = String.fromCodePoint(97 + randomInt(26))
  return /[a-z]/.test(char) ? letter : /[A-Z]/.test(char) ? letter.toUpperCase() : char
}

function digits(count: number): string {
  return Array.from({ length: count }, () => randomInt(10)).join('')
}

function isNear(time: number): boolean {
  return Math.abs(time - RECORDED_AT) <= WINDOW
}

const ISO = /^(\d{4}-\d\d-\d\d)(?:([T ])(\d\d:\d\d:\d\d)(\.\d+)?( ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/
/** As in HTTP and mail, and as in C with an offset, which X writes. */
const HTTP_DATE =
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (GMT|\+0000)$|^[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d (\+0000) \d{4}$/

/** A time at another moment, written in the same way. Undefined for a text that is none, or far from the examples'. */
function shiftedDate(text: string, shift: number): string | undefined {
  const [, zone, offsetZone] = HTTP_DATE.exec(text) ?? []
  if (zone !== undefined || offsetZone !== undefined) {
    const at = Date.parse(text)
    if (!isNear(at)) return undefined
    const [day = '', date, month, year, clock] = new Date(at + shift).toUTCString().split(' ')
    return zone === undefined
      ? [day.slice(0, 3), month, date, clock, offsetZone, year].join(' ')
      : [day, date, month, year, clock, zone].join(' ')
  }
  const [, day = '', between, time, fraction = '', offset = ''] = ISO.exec(text) ?? []
  if (day === '') return undefined
  const [, hours, minutes = '00'] = /([+-]\d\d):?(\d\d)?$/.exec(offset) ?? []
  const sign = hours === undefined ? 'Z' : `${hours}:${minutes}`
  const at = Date.parse(`${day}T${time ?? '12:00:00'}${fraction.slice(0, 4)}${sign}`)
  if (!isNear(at)) return undefined
  const offsetMs = at - Date.parse(`${day}T${time ?? '12:00:00'}${fraction.slice(0, 4)}Z`)
  const local = new Date(at + shift - offsetMs).toISOString()
  if (time === undefined || between === undefined) return local.slice(0, 10)
  const finer = fraction === '' ? '' : `${local.slice(19, 23)}${fraction.slice(4)}`.slice(0, fraction.length)
  return `${local.slice(0, 10)}${between}${local.slice(11, 19)}${finer}${offset}`
}
