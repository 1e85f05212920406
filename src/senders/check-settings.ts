import { parseUrl } from '../base/address.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { checkNames } from '../base/names.js'
import type { Secret } from '../base/secret.js'
import {
  MAX_MAX_BODY,
  NEW_TUNNEL,
  ON_DUPLICATE,
  PROVIDER_NAMES,
  type Settings,
  STORE_KINDS,
} from '../base/settings.js'
import { SharedStore } from '../base/shared-store.js'
import { didYouMean } from '../base/text.js'
import { isObject } from '../json/parse.js'
import { SOURCE } from '../journal/filter.js'
import { isScheme, SCHEME_NAMES, schemeOf } from './senders.js'

/** Most attempts at once, as of `--concurrency`. */
const MAX_CONCURRENCY = 64
const MAX_PORT = 65_535
const SOURCE_NAME = new RegExp(`^${SOURCE}$`)

/** What is wrong with a value, as what follows its name: ` must be …`, `.current must be …`. Undefined if nothing is. */
type Check = (value: unknown) => string | undefined

const must = (what: string, holds: (value: unknown) => boolean): Check => {
  return (value) => (holds(value) ? undefined : ` must be ${what}`)
}
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && value > 0
/** By its method, since a program may have two copies of the package. */
const isSecret = (value: unknown): value is Secret => isObject(value) && typeof value['reveal'] === 'function'

const text = must('a text', isText)
const texts = must('a list of texts', (value) => Array.isArray(value) && value.every(isText))
const flag = must('true or false', (value) => typeof value === 'boolean')
const secret = must('a Secret: new Secret(text)', isSecret)
const milliseconds = must('a number of milliseconds above 0', isNumber)
const address = must('an address with http:// or https://', (value) => {
  return isText(value) && /^https?:$/.test(parseUrl(value)?.protocol ?? '')
})
const oneOf = (names: readonly string[]): Check => {
  return must(`one of ${names.join(', ')}`, (value) => isText(value) && names.includes(value))
}
const whole = (from: number, to: number): Check => {
  return must(`a whole number from ${from} to ${to}`, (value) => {
    return typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to
  })
}
const optional = (check: Check): Check => {
  return (value) => (value === undefined ? undefined : check(value))
}
/** Checks the members of an object. */
const members = (checks: Readonly<Record<string, Check>>): Check => {
  return (value) => {
    if (!isObject(value)) return ' must be an object'
    for (const [name, check] of Object.entries(checks)) {
      const wrong = check(value[name])
      if (wrong !== undefined) return `.${name}${wrong}`
    }
    return undefined
  }
}

const routeObjects = must('a list of routes', (value) => Array.isArray(value) && value.every(isObject))
const routeSettings = members({
  forward: texts,
  exec: texts,
  ignore: texts,
  routes: optional(routeObjects),
  timeout: optional(milliseconds),
  reply: optional(texts),
})
const secrets = members({ current: secret, previous: optional(secret), own: optional(secret) })
const source = members({
  name: must(
    '1–32 letters a–z, digits or -, and begin with a letter',
    (value) => isText(value) && SOURCE_NAME.test(value),
  ),
  scheme: (value) => (isText(value) && isScheme(value) ? undefined : unknownScheme(value)),
  secrets,
})

/** Says what is wrong with the parts of a scheme. */
function reasonOf(scheme: string): string {
  try {
    schemeOf(scheme)
    return ''
  } catch (error) {
    return toRelayError(error).message
  }
}

function unknownScheme(value: unknown): string {
  if (!isText(value)) return ' must be a text'
  const [name = ''] = value.split(' ')
  if (SCHEME_NAMES.includes(name)) return `: ${reasonOf(value)}`
  return ` must be a scheme that relay knows, not ${JSON.stringify(name)}${didYouMean(name, SCHEME_NAMES)}`
}

const CHECKS: Readonly<Record<keyof Settings, Check>> = {
  webhookSecrets: secrets,
  sources: optional((value) => {
    if (!Array.isArray(value)) return ' must be a list'
    for (const [i, each] of value.entries()) {
      const wrong = source(each)
      if (wrong !== undefined) return `[${i}]${wrong}`
    }
    return undefined
  }),
  routes: (value) => (Array.isArray(value) ? routeObjects(value) : routeSettings(value)),
  profile: must('a name', (value) => isText(value) && value !== ''),
  folder: text,
  provider: oneOf(PROVIDER_NAMES),
  providerUrl: address,
  oauthClient: optional(members({ id: text, secret })),
  host: text,
  port: whole(0, MAX_PORT),
  allowedHosts: texts,
  inspect: optional(flag),
  metrics: optional(flag),
  inspectHosts: optional(texts),
  publicUrl: optional(address),
  baseUrl: optional(address),
  store: (value) => (value instanceof SharedStore ? undefined : oneOf(STORE_KINDS)(value)),
  maxBody: whole(1, MAX_MAX_BODY),
  tokenTtl: milliseconds,
  concurrency: whole(1, MAX_CONCURRENCY),
  onDuplicate: oneOf(ON_DUPLICATE),
  keep: milliseconds,
  keepMax: must('a number of bytes above 0', isNumber),
  tunnel: optional((value) => (value === NEW_TUNNEL ? undefined : address(value))),
  hubToken: optional(secret),
}
const NAMES = Object.fromEntries([...Object.keys(CHECKS), 'sandbox'].map((name) => [name, true] as const))

/**
 * Checks the settings of a program without types, so that a wrong one is an error of the call and not of a later request.
 * Routes are checked where they are read.
 * @throws RelayError `settings` that names the setting and repeats no value
 */
export function checkSettings(given: Partial<Settings>): void {
  if (!isObject(given)) throw new RelayError('settings', 'The settings must be an object')
  checkNames(given, NAMES, { of: 'There is no setting', kind: 'settings', ownAllowed: true })
  const own: Readonly<Record<string, unknown>> = { ...given }
  for (const [name, check] of Object.entries(CHECKS)) {
    const wrong = name in own ? check(own[name]) : undefined
    if (wrong !== undefined) throw new RelayError('settings', `The setting ${name}${wrong}`)
  }
}

/** {@link checkSettings} of all that a relay needs. @throws RelayError `settings` for a missing one, too */
export function checkAllSettings(given: Settings | SandboxedSettings): void {
  const own: Readonly<Record<string, unknown>> = isObject(given) ? { ...given } : {}
  const ofSandbox = isObject(own['sandbox']) ? ['provider', 'providerUrl'] : []
  for (const [name, check] of Object.entries(CHECKS)) {
    const isMissing = own[name] === undefined && check(undefined) !== undefined && !ofSandbox.includes(name)
    if (isMissing) throw new RelayError('settings', `The setting ${name} is missing`)
  }
  checkSettings(given)
}

/** Settings of a relay with a sandbox, which is its code host. */
type SandboxedSettings = Omit<Settings, 'provider' | 'providerUrl'>
