import { RelayError, isError } from '../base/errors.js'
import { parseJson, withoutRoot } from '../json/parse.js'
import type { Delivery } from '../journal/types.js'
import { readContent } from '../senders/content.js'
import { compilePattern } from './pattern.js'

// The conditions of `relay wait --where` and of routes: one language, with one parser.

/** The parts of a delivery that a condition can ask about. All of them are covered by its signature. */
export type ConditionSubject = Pick<Delivery, 'body' | 'repo' | 'provider'>

/** A delivery for conditions, whose payload is parsed when a condition first asks for it. */
export class DeliveryView {
  readonly #delivery: ConditionSubject
  #payload: { readonly value: unknown } | undefined

  constructor(delivery: ConditionSubject) {
    this.#delivery = delivery
  }

  /** `owner/name` of the repository, or null. */
  get repo(): string | null {
    return this.#delivery.repo
  }

  /** Name of the source. */
  get source(): string {
    return this.#delivery.provider
  }

  /** The payload: JSON, or the fields of a form. Undefined if it is neither. */
  get payload(): unknown {
    this.#payload ??= { value: readContent(this.#delivery.body).value }
    return this.#payload.value
  }
}

/** A condition on a delivery. */
export interface Condition {
  /** The condition as written. */
  readonly text: string
  readonly holds: (subject: DeliveryView) => boolean
  /** Formats what the delivery has there: `ref is refs/heads/dev`. It contains text from outside. */
  readonly describe: (subject: DeliveryView) => string
}

/** Longest condition, far above any useful one. Characters. */
const MAX_LENGTH = 1000
/** Most characters of a value in an explanation. */
const MAX_SHOWN = 100

const NAME = String.raw`[^\s.[\]=!~"']+`
const INDEX = String.raw`\[\d{1,15}\]`
const PATH = new RegExp(`^(?:${NAME}|${INDEX})(?:\\.${NAME}|${INDEX})*`)
const STEP = /\[(\d+)\]|[^.[\]]+/g
const OPERATOR = /\s*(==|!=|~)\s*/y
const STRING = /^"(?:[^"\\]|\\.)*"$/s
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i

/** Paths that are not of the payload. A payload's own member of such a name cannot be asked for. */
const REPO = '@repo'
const SOURCE = '@source'

/**
 * Parses `path==literal`, `path!=literal` or `path~pattern`. A path is names joined by dots, and `[0]`; `@repo` is the
 * repository, in any case, and `@source` the source. A literal in quotes is text. Without quotes it matches text, a
 * number, `true`, `false` or `null` of that form. A missing field is `null`. A pattern is a regular expression of
 * {@link compilePattern}, tested on text, numbers, `true` and `false`.
 * @param place begins the message of an error: the name of the flag, or of the member of a settings file
 * @throws RelayError `usage` with the expected syntax and the position
 */
export function parseCondition(given: string, place: string): Condition {
  const text = given.trim()
  if (text.length > MAX_LENGTH)
    throw new RelayError('usage', `${place}: is longer than ${MAX_LENGTH} characters`)
  const expected = (what: string, at: number): RelayError => failure(place, what, text, at)
  const [path = ''] = PATH.exec(text) ?? []
  if (path === '') throw expected('a name or [0]', 0)
  OPERATOR.lastIndex = path.length
  const [all = '', operator] = OPERATOR.exec(text) ?? []
  const at = path.length + all.length
  if (operator === undefined) {
    if (text[at] === '.') throw expected('a name', at + 1)
    if (text[at] === '[') throw expected('a number and ]', at + 1)
    throw expected('==, != or ~', at)
  }
  if (at === text.length) throw expected(operator === '~' ? 'a pattern' : 'a value', at)
  const isRepo = path === REPO
  const test =
    operator === '~'
      ? readPattern(text, at, { ignoreCase: isRepo }, expected)
      : readLiteral(isRepo ? text.toLowerCase() : text, at, expected)
  const valueOf = readerOf(path)
  const read = (subject: DeliveryView): unknown => {
    const value = valueOf(subject)
    return isRepo && operator !== '~' && typeof value === 'string' ? value.toLowerCase() : value
  }
  return {
    text,
    holds: (subject) => test(read(subject)) === (operator !== '!='),
    describe: (subject) => `${path} is ${describeValue(valueOf(subject))}`,
  }
}

/** Makes a function that reads what a path names. */
function readerOf(path: string): (subject: DeliveryView) => unknown {
  if (path === REPO) return ({ repo }) => repo
  if (path === SOURCE) return ({ source }) => source
  const steps = [...path.matchAll(STEP)].map(([name, index]) => (index === undefined ? name : Number(index)))
  return ({ payload }) => valueAt(payload, withoutRoot(payload, steps))
}

function valueAt(payload: unknown, steps: readonly (string | number)[]): unknown {
  return steps.reduce((value, step) => {
    if (typeof value !== 'object' || value === null) return null
    if (Array.isArray(value) !== (typeof step === 'number')) return null
    return Object.getOwnPropertyDescriptor(value, step)?.value ?? null
  }, payload)
}

function describeValue(value: unknown): string {
  if (value === undefined) return 'null'
  if (!isScalar(value)) return Array.isArray(value) ? 'a list' : 'an object'
  const text = String(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN).replace(/\p{Cs}$/u, '')}…` : text
}

type Expected = (what: string, at: number) => RelayError

function readLiteral(text: string, at: number, expected: Expected): (value: unknown) => boolean {
  const literal = text.slice(at)
  const quoted = unquoted(text, at, { isPattern: false }, expected)
  if (quoted !== undefined) return (value) => value === quoted
  return (value) => {
    if (typeof value === 'number') return NUMBER.test(literal) && Number(literal) === value
    return isScalar(value) && String(value) === literal
  }
}

function readPattern(
  text: string,
  at: number,
  options: Parameters<typeof compilePattern>[1],
  expected: Expected,
): (value: unknown) => boolean {
  const source = unquoted(text, at, { isPattern: true }, expected)
  try {
    const isIn = compilePattern(source ?? text.slice(at), options)
    return (value) => value !== null && isScalar(value) && isIn(String(value))
  } catch (cause) {
    const why = isError(cause) ? cause.message.replace('error parsing regexp: ', '') : ''
    throw expected(`a regular expression (${why})`, at)
  }
}

/**
 * Parses quoted text at the end. Undefined if it does not start with a quote. Backslashes in a pattern are unchanged.
 */
function unquoted(
  text: string,
  at: number,
  { isPattern }: { isPattern: boolean },
  expected: Expected,
): string | undefined {
  const rest = text.slice(at)
  const quote = rest.charAt(0)
  if (quote !== '"' && quote !== "'") return undefined
  if (rest.length < 2 || !rest.endsWith(quote)) throw expected(`${quote} at the end`, text.length)
  const inner = rest.slice(1, -1)
  if (quote === "'") return inner
  if (isPattern && STRING.test(rest)) return inner.replaceAll(String.raw`\"`, '"')
  try {
    return String(parseJson(rest))
  } catch {
    throw expected('one JSON string', at)
  }
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function failure(place: string, what: string, text: string, at: number): RelayError {
  const where = at < text.length ? `at character ${at + 1}, before ${text.slice(at)}` : 'at the end'
  return new RelayError('usage', `${place} ${text}: expected ${what} ${where}`)
}

// Conditions in brackets, after the match of a route

/** Conditions that were read, with the position behind the last bracket. */
export interface Bracketed {
  readonly conditions: readonly Condition[]
  readonly end: number
}

/**
 * Reads the conditions in brackets that begin at a position: `[ref==refs/heads/main][@repo==octo/demo]`. A value with a
 * bracket that has no counterpart is written in quotes. There are none if no bracket is there.
 * @throws RelayError `usage` as {@link parseCondition}, or for a bracket without an end
 */
export function readBracketed(text: string, at: number): Bracketed {
  const conditions: Condition[] = []
  let end = at
  while (text[end] === '[') {
    const close = endOfBracket(text, end)
    if (close === -1) throw new RelayError('usage', `The condition ${text.slice(end)} has no ] at its end`)
    conditions.push(parseCondition(text.slice(end + 1, close), 'condition'))
    end = close + 1
  }
  return { conditions, end }
}

/** Formats conditions as {@link readBracketed} reads them. */
export function bracketed(conditions: readonly Condition[]): string {
  return conditions.map(({ text }) => `[${text}]`).join('')
}

/** Position behind the brackets that begin at a position, or -1 if one has no end. What is in them is not checked. */
export function skipBracketed(text: string, at: number): number {
  let end = at
  while (end !== -1 && text[end] === '[') {
    const close = endOfBracket(text, end)
    end = close === -1 ? -1 : close + 1
  }
  return end
}

const QUOTED_VALUE = /(?:==|!=|~)\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')/suy

/** Position of the bracket that ends the one at a position, or -1. A quote counts only where a value begins. */
function endOfBracket(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    QUOTED_VALUE.lastIndex = at
    const [quoted] = QUOTED_VALUE.exec(text) ?? []
    if (quoted !== undefined) at += quoted.length - 1
    else if (text[at] === '[') depth++
    else if (text[at] === ']' && --depth === 0) return at
  }
  return -1
}
