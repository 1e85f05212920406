import { isLoopback } from '../base/address.js'
import { RelayError, isError } from '../base/errors.js'
import type { RouteDefinition } from '../base/settings.js'
import { didYouMean } from '../base/text.js'
import { parseDuration } from '../base/time.js'
import { isConnectionHeader, isSendable } from '../http/headers.js'
import { isObject } from '../json/parse.js'
import { parseMatch } from '../journal/filter.js'
import { type Condition, parseCondition, skipBracketed } from './where.js'
import { asSetting, isTargetName, readAddress, readCommand } from './route-text.js'
import { readReplyTime, createRoute, type Route } from './routes.js'
import type { Target } from './target.js'
import { variablesIn } from './variables.js'

/** Maximum concurrency: a program on the same machine is unlikely to respond faster with more parallel requests. */
export const MAX_CONCURRENCY = 64
/** Longest time limit of an attempt, that of Node's timers: 24 days. Milliseconds. */
const MAX_TIMEOUT_MS = 24 * 86_400_000
/** Word for no time limit. */
export const NO_TIMEOUT = 'none'

/** Members of a route. The compiler requires each. */
const MEMBERS: Readonly<Record<keyof RouteDefinition, true>> = {
  name: true,
  match: true,
  where: true,
  forward: true,
  exec: true,
  timeout: true,
  ordered: true,
  concurrency: true,
  headers: true,
  verify: true,
  ca: true,
  reply: true,
}

/**
 * Reads a route that is an object. `place` begins the messages, which quote no header and no password.
 * @throws RelayError `settings` that names the member, and the closest one for an unknown one
 */
export function readRoute(given: unknown, place: string): Route {
  if (!isObject(given)) throw wrong(place, 'must be an object: { "match": "push", "exec": "./deploy.sh" }')
  for (const key of Object.keys(given))
    if (!Object.hasOwn(MEMBERS, key))
      throw wrong(`${place}.${key}`, `is no member of a route${didYouMean(key, Object.keys(MEMBERS))}`)
  const member = new Members(given, place)
  const target = readTarget(member)
  const where = member.texts('where').map((text) => readCondition(text, `${place}.where`))
  const events = member.texts('match')
  const match = events.length === 0 ? '*' : events.join(',')
  if (match.includes('[')) throw wrong(`${place}.match`, 'must be events alone: write the condition as where')
  const route = {
    match: named(`${place}.match`, () => parseMatch(match)),
    where,
    target,
    ...member.optional('name', readName),
    ...member.optional('timeout', readTimeout),
    ...member.optional('ordered', readBoolean),
    ...member.optional('concurrency', readConcurrency),
    ...readReply(member),
  }
  const http = {
    ...member.optional('headers', readHeaders),
    ...member.optional('verify', readBoolean),
    ...member.optional('ca', readText),
  }
  if (target.kind === 'command')
    for (const key of Object.keys(http)) throw wrong(`${place}.${key}`, 'is for forward, not for exec')
  else checkCertificates(target.url, http, place)
  return createRoute({ ...route, ...http })
}

function readTarget(member: Members): Target {
  const { forward, exec } = { ...member.optional('forward', readText), ...member.optional('exec', readText) }
  if ((forward === undefined) === (exec === undefined))
    throw wrong(member.place, 'must have either forward, an address, or exec, a command')
  return named(member.place, () =>
    exec === undefined ? readAddress(forward ?? '', forward ?? '') : readCommand(exec),
  )
}

function checkCertificates(
  url: string,
  { verify, ca }: { readonly verify?: boolean; readonly ca?: string },
  place: string,
): void {
  const { protocol, hostname } = new URL(url)
  if (verify === false && !isLoopback(hostname))
    throw wrong(
      `${place}.verify`,
      'can be false only for an address of this machine: name the certificates of another one with ca',
    )
  if ((verify === false || ca !== undefined) && protocol !== 'https:')
    throw wrong(`${place}.${ca === undefined ? 'verify' : 'ca'}`, 'is for an https:// address')
}

/** Reads a condition. The short form of the route, which names its target, must be able to hold it. */
function readCondition(text: string, place: string): Condition {
  const condition = asSetting(() => parseCondition(text, place))
  const written = `[${condition.text}]`
  if (skipBracketed(written, 0) !== written.length)
    throw wrong(place, `${text}: write the value in quotes, since it has a bracket`)
  return condition
}

/** Reads the members of an object. */
class Members {
  readonly place: string
  readonly #given: Readonly<Record<string, unknown>>

  constructor(given: Readonly<Record<string, unknown>>, place: string) {
    this.#given = given
    this.place = place
  }

  /** A member with its value, or nothing if it is absent. `read` throws an Error that completes "<member>: …". */
  optional<const Key extends keyof RouteDefinition, Value>(
    key: Key,
    read: (value: unknown) => Value,
  ): { readonly [Name in Key]?: Value } {
    const value = this.#given[key]
    if (value === undefined) return {}
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a computed key has lost its type
    return named(`${this.place}.${key}`, () => ({ [key]: read(value) })) as { readonly [Name in Key]?: Value }
  }

  /** A text or a list of texts. */
  texts(key: 'match' | 'where'): readonly string[] {
    const { [key]: value = [] } = this.optional(key, (given) => [given].flat().map(readText))
    return value
  }
}

function readText(value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '') throw new Error('must be a text')
  if (value.includes('\0')) throw new Error('must hold no NUL character')
  return value
}

function readName(value: unknown): string {
  if (typeof value === 'string' && isTargetName(value)) return value
  throw new Error('must be 1–32 letters, digits, "_" or "-", beginning with a letter')
}

function readBoolean(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new Error('must be true or false')
  return value
}

function readConcurrency(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_CONCURRENCY)
    return value
  throw new Error(`must be a whole number from 1 to ${MAX_CONCURRENCY}`)
}

/** Reads a time limit: `90s`, or `none`, which is Infinity. Milliseconds. @throws Error that completes "<name>: …" */
export function readTimeout(value: unknown): number {
  if (value === NO_TIMEOUT) return Infinity
  const ms = typeof value === 'string' ? parseDuration(value) : undefined
  if (ms === undefined || ms > MAX_TIMEOUT_MS)
    throw new Error(`must be a duration such as 90s or 10m, up to 24d, or ${NO_TIMEOUT}`)
  return ms
}

/** Reads `reply`. False is as good as no member. */
function readReply(member: Members): Pick<Route, 'reply'> {
  const { reply = 0 } = member.optional('reply', (value) => {
    if (value === true) return true
    return value === false ? 0 : readReplyTime(typeof value === 'string' ? value : '')
  })
  return reply === 0 ? {} : { reply }
}

/** Reads headers to add. The messages quote no value. */
function readHeaders(value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) throw new Error('must be an object: { "X-Key": "$APP_KEY" }')
  const names = new Set<string>()
  for (const [name, text] of Object.entries(value)) {
    const shown = JSON.stringify(name)
    if (typeof text !== 'string') throw new Error(`the value of ${shown} must be a text`)
    if (!isSendable([name, text])) throw new Error(`${shown} is no header that can be sent`)
    if (isConnectionHeader(name))
      throw new Error(`${shown} is a header of the connection, or of relay itself`)
    if (names.has(name.toLowerCase())) throw new Error(`${shown} is there twice`)
    names.add(name.toLowerCase())
    variablesIn(text, shown)
  }
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)]))
}

/** Calls `read`, and puts the place before the message of its error. @throws RelayError `settings` */
function named<Value>(place: string, read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof RelayError && cause.message.startsWith(place)) throw cause
    if (isError(cause)) throw new RelayError('settings', `${place}: ${cause.message}`, { cause })
    throw cause
  }
}

function wrong(place: string, why: string): RelayError {
  return new RelayError('settings', `${place} ${why}`)
}
