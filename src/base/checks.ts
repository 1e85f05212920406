import { parseUrl } from './address.js'
import { type ErrorKind, RelayError } from './errors.js'
import type { Log } from './log.js'
import { type Seams, TIME_LIMITS } from './seams.js'
import { didYouMean, suggest } from './text.js'
import { MAX_TIMER_MS } from './wait.js'

// How the library and the testing kit check what a program without types passes to them: names and values, at the call.

/**
 * Says what is wrong with a value, as the words that follow its name: ` must be a text`, `.current is missing`. Undefined if
 * nothing is. Never repeats a value that may be a secret.
 */
export type ValueCheck = (value: unknown) => string | undefined

/** A check for each member of a type, so that none is forgotten. */
export type Checks<Type> = Readonly<Record<keyof Type, ValueCheck>>

type Members = Readonly<Record<string, unknown>>

/** ValueCheck of a value that must be there. `what` completes `must be …`. */
export function must(what: string, holds: (value: unknown) => boolean): ValueCheck {
  return (value) => {
    if (value === undefined) return ' is missing'
    return holds(value) ? undefined : ` must be ${what}${awaitHint(value)}`
  }
}

/** Hint at a forgotten `await`. */
function awaitHint(value: unknown): string {
  return isPromise(value) ? ', not a promise: await it' : ''
}

/** Allows a value to be absent. */
export function optional(check: ValueCheck): ValueCheck {
  return (value) => (value === undefined ? undefined : check(value))
}

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

const isPromise = (value: unknown): boolean => typeof memberOf(value, 'then') === 'function'
const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isPromise(value)
const isFunction = (value: unknown): boolean => typeof value === 'function'

export const text = must('a text', isText)
export const filledText = must('a text that is not empty', (value) => isText(value) && value !== '')
export const texts = must('a list of texts', (value) => Array.isArray(value) && value.every(isText))
export const flag = must('true or false', (value) => typeof value === 'boolean')
export const callback = must('a function', isFunction)
export const anyObject = must('an object', isMembers)
/** A time limit. Infinity means no limit. */
export const milliseconds = must(
  'a number of milliseconds above 0',
  (value) => typeof value === 'number' && value > 0,
)
export const isAddress = (value: unknown): boolean =>
  isText(value) && /^https?:$/.test(parseUrl(value)?.protocol ?? '')
export const address = must('an address with http:// or https://', isAddress)

/** Whole number, with what it counts in the message, such as `of milliseconds`. */
export function wholeNumber(from: number, to: number = Number.MAX_SAFE_INTEGER, of = ''): ValueCheck {
  const range = to === Number.MAX_SAFE_INTEGER ? `${from} or more` : `${from} to ${to}`
  const what = `a whole number${of === '' ? '' : ` ${of}`} from ${range}`
  return must(what, (value) => {
    return typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to
  })
}

/** Time of a timer, which Node rounds down to whole milliseconds. */
export const timerMs = wholeNumber(0, MAX_TIMER_MS, 'of milliseconds')

export function oneOf(names: readonly string[]): ValueCheck {
  const check = must(`one of ${names.join(', ')}`, (value) => isText(value) && names.includes(value))
  return (value) => {
    const wrong = check(value)
    return wrong === undefined || !isText(value) ? wrong : wrong + didYouMean(value, names)
  }
}

export function eachOf(what: string, check: ValueCheck): ValueCheck {
  const isList = must(`a list of ${what}`, (value) => Array.isArray(value))
  return (value) => {
    if (!Array.isArray(value)) return isList(value)
    for (const [i, each] of value.entries()) {
      const wrong = check(each)
      if (wrong !== undefined) return `[${i}]${wrong}`
    }
    return undefined
  }
}

/** A value that `JSON.stringify` writes completely: it would turn NaN and Infinity into null. */
export const json = must('a value of JSON', (value) => {
  try {
    return JSON.stringify(value) !== undefined && (typeof value !== 'number' || Number.isFinite(value))
  } catch {
    return false
  }
})

/** Object with these members and no others. */
export function members(checks: Readonly<Record<string, ValueCheck>>): ValueCheck {
  return (value) => {
    if (!isMembers(value)) return anyObject(value)
    const unknown = unknownIn(value, checks)
    return unknown === undefined ? wrongIn(value, checks) : ` has no ${unknown}`
  }
}

/** Accepts a signal of any realm, since a test environment can have an `AbortSignal` of its own. */
export const abortSignal: ValueCheck = (value) => {
  const isSignal = (given: unknown): boolean =>
    isMembers(given) && isFunction(given['throwIfAborted']) && isFunction(given['addEventListener'])
  const hint =
    isMembers(value) && isSignal(value['signal']) ? ', not its AbortController: give its signal' : ''
  const wrong = must('an AbortSignal', isSignal)(value)
  return wrong && wrong + hint
}

const LEVELS: Checks<Log> = { debug: callback, info: callback, warn: callback, error: callback }

export const logger: ValueCheck = must(
  `an object with the functions ${Object.keys(LEVELS).join(', ')}, such as console`,
  // Also accepts inherited methods, and a logger that is itself a function.
  (value) => Object.entries(LEVELS).every(([level, check]) => check(memberOf(value, level)) === undefined),
)

function memberOf(value: unknown, name: string): unknown {
  const has = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return has ? Reflect.get(value, name) : undefined
}

const limit = must(
  'a number of milliseconds of 0 or more',
  (value) => typeof value === 'number' && value >= 0,
)
const LIMITS = Object.keys(TIME_LIMITS).map((name) => {
  return [name, optional(name === 'retries' ? eachOf('delays in milliseconds', limit) : limit)] as const
})
const SEAMS: Checks<Seams> = {
  clock: optional(callback),
  random: optional(callback),
  limits: optional(members(Object.fromEntries(LIMITS))),
  background: optional(flag),
  storage: optional(anyObject),
}
export const seams: ValueCheck = members(SEAMS)

/** The words about an object and its members, as the caller knows them. */
export interface Words {
  readonly kind: ErrorKind
  /** The object: `startRelay: the options`. */
  readonly whole: string
  /** Before the name of a member that does not exist: `startRelay has no option`. */
  readonly unknown: string
  /** Before the name of a member whose value is wrong: `startRelay: the option`. */
  readonly member: string
  /** Example of a valid object, for a value that is none. */
  readonly example?: string
  /** Names that belong to another argument, and what that is: `it is an option, the second argument`. */
  readonly elsewhere?: { readonly names: object; readonly words: string }
  /** True: only a name that is nearly a known one is refused. Default: true for an object of a class, which has its own. */
  readonly ownAllowed?: boolean
}

/** {@link Words} for the options of a function. */
export function optionWords(call: string, more: Partial<Words> = {}): Words {
  const words = {
    whole: `${call}: the options`,
    unknown: `${call} has no option`,
    member: `${call}: the option`,
  }
  return { kind: 'usage', ...words, ...more }
}

/**
 * Checks the names and the values of an object's members. Without types, a misspelt option would do nothing, and a wrong
 * value would fail later, or never.
 * @throws RelayError of the kind, with the name, what is wanted, and the nearest name
 */
export function checkMembers(
  given: unknown,
  checks: Readonly<Record<string, ValueCheck>>,
  words: Words,
): void {
  if (!isMembers(given)) {
    const like = words.example === undefined ? '' : `: ${words.example}`
    throw new RelayError(words.kind, `${words.whole} must be an object${like}${awaitHint(given)}`)
  }
  const unknown = unknownIn(given, checks, words.ownAllowed)
  if (unknown !== undefined) {
    const { elsewhere } = words
    const hint = elsewhere && Object.hasOwn(elsewhere.names, unknown) ? `: ${elsewhere.words}` : ''
    throw new RelayError(words.kind, `${words.unknown} ${unknown}${hint}`)
  }
  const wrong = wrongIn(given, checks)
  if (wrong !== undefined) throw new RelayError(words.kind, `${words.member} ${wrong.replace(/^\./, '')}`)
}

/** Checks one argument. @throws RelayError `usage`, for example `fixtureOf: the event is missing` */
export function checkArgument(name: string, value: unknown, check: ValueCheck): void {
  const wrong = check(value)
  if (wrong !== undefined) throw new RelayError('usage', `${name}${wrong}`)
}

/** The first name that is not known, with the nearest one. */
function unknownIn(
  given: Members,
  known: Readonly<Record<string, unknown>>,
  ownAllowed = isOfClass(given),
): string | undefined {
  const names = Object.keys(known)
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(known, name) || value === undefined) continue
    if (ownAllowed && suggest(name, names) === undefined) continue
    return `${name}${didYouMean(name, names)}`
  }
  return undefined
}

/** The first member whose value is wrong, after a dot. Inherited ones count: a callback can be a method. */
function wrongIn(given: Members, checks: Readonly<Record<string, ValueCheck>>): string | undefined {
  for (const [name, check] of Object.entries(checks)) {
    const wrong = check(given[name])
    if (wrong !== undefined) return `.${name}${wrong}`
  }
  return undefined
}

function isOfClass(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given)
  // The prototype of an object literal inherits nothing, in any realm.
  return isMembers(prototype) && Object.getPrototypeOf(prototype) !== null
}
