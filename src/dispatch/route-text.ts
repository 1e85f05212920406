import { RelayError } from '../base/errors.js'
import { expandLocal } from '../base/address.js'
import { suggest } from '../base/text.js'
import { hostEventNames } from '../senders/event-tables.js'
import { type Match, parseMatch, SOURCE } from '../journal/filter.js'
import { type Condition, readBracketed } from './where.js'
import { createRoute, isHttp, type Route, withoutSecrets } from './routes.js'
import type { Target } from './target.js'

// The short form of a route, as flags and variables have it: `[name=][match[condition]…=]target`.

const ALL = '*'
const WORD = String.raw`[\w.:*-]*`
const OF_SOURCE = `${SOURCE}/[\\w:*-][\\w.: /*-]*`
/**
 * Before a command, an event with spaces must look like GitLab's `Push Hook`: `bin/run x=1` and `bin/run ENV=1` are
 * commands.
 */
const OF_SOURCE_BEFORE_COMMAND = `${SOURCE}/[\\w:*-][\\w.:/*-]*(?: [A-Z][a-z][\\w.:/*-]*)*`

/** Pattern of a match whose event a code host sends. */
const knownMatch = (): string => `(?:\\*|(?:\\*|${hostEventNames().join('|')})(?:\\.[\\w.:*-]+)?)`

/** The events of a match, before its conditions. */
const listOf = (event: string): string => `(?:${event})(?: *, *(?:${event}))*`
const BEFORE_ADDRESS = new RegExp(`^(?:${listOf(`${OF_SOURCE}|[^=,[/]*`)})$`)
const BEFORE_COMMAND = new RegExp(
  `^${listOf(`${OF_SOURCE_BEFORE_COMMAND}|${WORD}`)}(?:(?==)|(?<=[\\w:*-])(?=\\[))`,
)

/**
 * Parses `[name=][match=]url`. Without a match, the route is for every delivery. A single word before the address is
 * the match if it is an event or resembles one, otherwise the name. Conditions follow the match in brackets. `3000` and
 * `localhost:3000/hooks` are addresses on this machine.
 * @throws RelayError `settings` that names the problem
 */
export function parseForward(text: string): Route {
  const { name, rest: whole } = readName(text.trim(), isAddress, OF_SOURCE)
  const [events = ''] = isAddress(whole) ? [] : (/^[^=[]*/.exec(whole) ?? [])
  // Other text with a slash before its `=` is an unrecognized address, which can contain a password.
  const isMatch = !isAddress(whole) && BEFORE_ADDRESS.test(events.trim())
  const { conditions, end } = isMatch ? readConditions(whole, events.length) : NO_CONDITIONS
  const isEnded = isMatch && whole[end] === '='
  const target = readAddress(isEnded ? whole.slice(end + 1) : whole, whole)
  const match = readMatch(isEnded ? events.trim() : ALL)
  return createRoute({ match, where: conditions, target, ...(name !== undefined && { name }) })
}

const NO_CONDITIONS: { readonly conditions: readonly Condition[]; readonly end: number } = {
  conditions: [],
  end: 0,
}

/**
 * Parses the address of a target. `whole` is what messages quote, without passwords.
 * @throws RelayError `settings`
 */
export function readAddress(text: string, whole: string): Target {
  const written = text.trim()
  const url = expandLocal(written)
  if (!isHttp(url))
    throw invalid(`'${withoutSecrets(whole)}' names no http:// or https:// address${hintFor(written)}`)
  checkHost(url, whole)
  return { kind: 'http', url }
}

const NAMED = /^([a-z][\w-]{0,31})=(.*)$/is

/**
 * Splits the target's name off, if the text begins with one: a word that is no event, before a match or, if `isTarget`
 * accepts the rest, before the target itself. There, a word that resembles an event is probably a misspelt match, and
 * no name. `ofSource` is the pattern of a match that names its source.
 */
function readName(
  text: string,
  isTarget: (rest: string) => boolean,
  ofSource: string,
): { readonly name?: string; readonly rest: string } {
  const [, name = '', after = ''] = NAMED.exec(text) ?? []
  const rest = after.trim()
  if (name === '') return { rest: text }
  const events = hostEventNames()
  // A match that is malformed behind its first event is still one, and an error later.
  const match = new RegExp(`^(?:(?:${knownMatch()}|${ofSource})\\s*[=,[]|[\\w.:*-]+[,[][^\\s]*=)`)
  const isName =
    !events.includes(name) && (match.test(rest) || (isTarget(rest) && suggest(name, events) === undefined))
  return isName ? { name, rest } : { rest: text }
}

/** A name of a target. */
export function isTargetName(text: string): boolean {
  return /^[a-z][\w-]{0,31}$/i.test(text)
}

/**
 * Parses `[name=][match=]command`. Without a match, the route is for every delivery. A word before the first `=` is the
 * match, unless a match follows it, so a command that begins with an assignment needs an explicit match: `*=NAME=value
 * command`. Conditions follow the match in brackets.
 * @throws RelayError `settings` that names the problem, also for text that is meant as a match and is none: it must not
 * become a command for every delivery
 */
export function parseExec(text: string): Route {
  const { name, rest: whole } = readName(text.trim(), () => false, OF_SOURCE_BEFORE_COMMAND)
  const [events] = BEFORE_COMMAND.exec(whole) ?? []
  if (events === undefined) refuseMalformed(whole)
  if (events !== undefined && /^[A-Z_][A-Z\d_]*$/.test(events) && whole[events.length] === '=') {
    throw invalid(`'${events}=' sets a variable; for a command that begins so, write '*=${events}=…'`)
  }
  const { conditions, end } = events === undefined ? NO_CONDITIONS : readConditions(whole, events.length)
  if (events !== undefined && whole[end] !== '=') throw malformed(whole.slice(0, end))
  const target = readCommand(events === undefined ? whole : whole.slice(end + 1))
  return createRoute({
    match: readMatch(events ?? ALL),
    where: conditions,
    target,
    ...(name !== undefined && { name }),
  })
}

/** Reads the command of a target. @throws RelayError `settings` */
export function readCommand(text: string): Target {
  const command = text.trim()
  if (command === '') throw invalid('there is no command')
  if (command.includes('\0')) throw invalid('a command cannot hold a NUL character')
  return { kind: 'command', command }
}

/** Patterns of text before the first `=` that is meant as a match and is none. */
const malformedPatterns = (known: string): readonly RegExp[] => [
  // `push =./x`, `"push"=./x`
  new RegExp(`^${listOf(`${OF_SOURCE_BEFORE_COMMAND}|[\\w.:*-]+`)}\\s+(?==)`),
  /^(["'])[^"'=]*\1\s*(?==)/,
  // `push,=./x` and `push[main` without an end; no command begins so
  /^[\w.:*-]+[,[][^=]*/,
  // `push|issues=./x`, `!push=./x`
  new RegExp(`^${known}[^\\s\\w.:*=/-][^\\s=]*(?==)`),
  new RegExp(`^[!^%@+?&|,;:-]+${known}(?==)`),
  // `stripe/=./x`
  new RegExp(`^${SOURCE}/\\s*(?==)`),
  // `push issues=./x`, `push [ref==main]=./x`
  new RegExp(`^${known}(?:\\s+(?:and\\s+|or\\s+)?${known})+(?==)`),
  new RegExp(`^${known}\\s+\\[[^=]*(?==)`),
]

/** @throws RelayError `settings` for text that begins with a malformed match, instead of a command */
function refuseMalformed(text: string): void {
  for (const pattern of malformedPatterns(knownMatch())) {
    const [found] = pattern.exec(text) ?? []
    if (found !== undefined) throw malformed(found)
  }
}

/** Most characters of a malformed match in a message. */
const MAX_SHOWN = 60

function malformed(text: string): RelayError {
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return invalid(
    `'${shown}' is no match. Write push=command, push,issues=command or push[ref==refs/heads/main]=command; for a command that begins so, write '*=${shown}…'`,
  )
}

function readConditions(text: string, at: number): ReturnType<typeof readBracketed> {
  return asSetting(() => readBracketed(text, at))
}

function readMatch(text: string): Match {
  return asSetting(() => parseMatch(text))
}

/** Calls `read`, whose errors of the kind `usage` become those of a setting. @throws RelayError `settings` */
export function asSetting<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof RelayError) throw new RelayError('settings', cause.message, { cause })
    throw cause
  }
}

/**
 * Refuses an address that the URL standard reads as another host than a person does: `http://a\@b/` goes to `a`,
 * `http://127.1/` to 127.0.0.1 (https://url.spec.whatwg.org, sections 3.5 and 4.4).
 * @throws RelayError `settings` that says how to write it
 */
function checkHost(url: string, whole: string): void {
  if (url.includes('\\'))
    throw invalid(`'${withoutSecrets(whole)}' holds a backslash: write / where it means one, else %5C`)
  const { hostname } = new URL(url)
  const written = url.replace(/^[^/]*\/\//, '').replace(/[/?#].*$/s, '')
  const name = written.slice(written.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  if (name.toLowerCase() !== hostname)
    throw invalid(`'${withoutSecrets(whole)}' goes to the host ${hostname}: write that name`)
}

/** Advice for an address: `: write https://…` for a host on another machine, the limit for a port beyond it. */
function hintFor(text: string): string {
  if (/^(?:localhost)?:?\d{5,}(?=[/?#]|$)/i.test(text)) return ': a port is at most 65535'
  const isHost = /^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?=[/?#]|$)/i.test(text)
  return isHost ? `: write https://${withoutSecrets(text)}` : ''
}

function isAddress(text: string): boolean {
  return isHttp(expandLocal(text))
}

function invalid(why: string): RelayError {
  return new RelayError('settings', `Invalid route: ${why}`)
}
