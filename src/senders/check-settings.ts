import {
  address,
  type ValueCheck,
  checkMembers,
  type Checks,
  flag,
  isText,
  eachOf,
  filledText,
  members,
  milliseconds,
  must,
  oneOf,
  optional,
  text,
  texts,
  wholeNumber,
  type Words,
} from '../base/checks.js'
import { toRelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import {
  MAX_MAX_BODY,
  NEW_TUNNEL,
  ON_DUPLICATE,
  PROVIDER_NAMES,
  type RouteSettings,
  type Settings,
  type SourceSettings,
  STORE_KINDS,
  type WebhookSecrets,
} from '../base/settings.js'
import { shownSource } from '../base/source-names.js'
import { SharedStore } from '../base/shared-store.js'
import { fieldsOf, isObject } from '../json/parse.js'
import { SOURCE } from '../journal/filter.js'
import { isScheme, SCHEME_NAMES, schemeOf, senderOf } from './senders.js'
import { meantScheme } from './source-text.js'

/** Most attempts at once, as of `--concurrency`. */
const MAX_CONCURRENCY = 64
/** A port, 0 for any free one. */
export const port = wholeNumber(0, 65_535)
const SOURCE_NAME = new RegExp(`^${SOURCE}$`)

/** Recognizes a secret by its method, since a program may have two copies of the package. */
const isSecret = (value: unknown): value is Secret => isObject(value) && typeof value['reveal'] === 'function'
const secret = must('a Secret: new Secret(text)', isSecret)
/** An empty secret would let anyone sign. */
const filledSecret: ValueCheck = (value) =>
  secret(value) ?? (isSecret(value) && value.reveal() === '' ? ' must not be empty' : undefined)

const routeObjects = must('a list of routes', (value) => Array.isArray(value) && value.every(isObject))
const routeSettings = members({
  forward: texts,
  exec: texts,
  ignore: texts,
  routes: optional(routeObjects),
  timeout: optional(milliseconds),
  reply: optional(texts),
} satisfies Checks<RouteSettings>)
const secretsWith = (current: ValueCheck): ValueCheck =>
  members({
    current,
    previous: optional(filledSecret),
    own: optional(filledSecret),
  } satisfies Checks<WebhookSecrets>)

/** Name of a source, also as the kit's options have it. */
export const sourceName = must(
  '1–32 letters a–z, digits or -, and begin with a letter',
  (value) => isText(value) && SOURCE_NAME.test(value),
)
/** Name of a source that is declared: that of a code host is the address of every delivery without a source. */
export const declaredName: ValueCheck = (value) =>
  sourceName(value) ??
  (isText(value) && shownSource(value) === undefined ? ' must not be that of a code host' : undefined)

const source: ValueCheck = (value) => {
  const scheme = isObject(value) ? value['scheme'] : undefined
  const { proves = false, bringsSecret = false } = isText(scheme) && isScheme(scheme) ? senderOf(scheme) : {}
  // The secret is empty for a sender without proof, and for one whose handshake brings it.
  const current = proves && !bringsSecret ? filledSecret : secret
  const checks: Checks<SourceSettings> = {
    name: declaredName,
    scheme: schemeText,
    secrets: secretsWith(current),
  }
  return members(checks)(value)
}

/** Refuses a second source of one name: deliveries have one address for both. */
function sameNames(sources: unknown): string | undefined {
  const names = Array.isArray(sources) ? sources.map((each) => fieldsOf(each)['name']) : []
  const second = names.findIndex((name, i) => names.indexOf(name) < i)
  return second === -1 ? undefined : `[${second}].name is that of another source`
}

/** Says what is wrong with the parts of a scheme whose name is known. Undefined if the name is not. */
export function schemeDefect(scheme: string): string | undefined {
  const [name = ''] = scheme.split(' ')
  if (!SCHEME_NAMES.includes(name)) return undefined
  try {
    schemeOf(scheme)
    return undefined
  } catch (error) {
    return toRelayError(error).message
  }
}

function schemeText(value: unknown): string | undefined {
  if (!isText(value)) return text(value)
  if (isScheme(value)) return undefined
  const defect = schemeDefect(value)
  if (defect !== undefined) return `: ${defect}`
  const [name = ''] = value.split(' ')
  return ` must be a scheme that relay knows, not ${JSON.stringify(name)}${meantScheme(name)}`
}

/** Checks of the settings, by their names. */
export const SETTING_CHECKS: Checks<Settings> = {
  webhookSecrets: secretsWith(filledSecret),
  sources: optional((value) => eachOf('sources', source)(value) ?? sameNames(value)),
  routes: (value) => (Array.isArray(value) ? routeObjects(value) : routeSettings(value)),
  profile: must('a name', (value) => isText(value) && value !== ''),
  folder: text,
  provider: oneOf(PROVIDER_NAMES),
  providerUrl: address,
  oauthClient: optional(members({ id: text, secret })),
  host: text,
  port,
  allowedHosts: texts,
  inspect: optional(flag),
  metrics: optional(flag),
  inspectHosts: optional(texts),
  publicUrl: optional(address),
  baseUrl: optional(address),
  store: (value) => (value instanceof SharedStore ? undefined : oneOf(STORE_KINDS)(value)),
  maxBody: wholeNumber(1, MAX_MAX_BODY),
  tokenTtl: milliseconds,
  concurrency: wholeNumber(1, MAX_CONCURRENCY),
  onDuplicate: oneOf(ON_DUPLICATE),
  keep: milliseconds,
  keepMax: must('a number of bytes above 0', (value) => typeof value === 'number' && value > 0),
  tunnel: optional((value) => (value === NEW_TUNNEL ? undefined : address(value))),
  hubToken: optional(secret),
}
/** Only an object asks for a sandbox: a program without types may set the field to nothing. */
const sandbox: ValueCheck = (value) =>
  value === undefined || value === null ? undefined : members({ port })(value)

// Names that are not nearly a setting's are allowed, since programs pass objects that have more.
const WORDS: Words = {
  kind: 'settings',
  whole: 'The settings',
  unknown: 'There is no setting',
  member: 'The setting',
  ownAllowed: true,
}

/**
 * Checks the settings of a program without types, so that a wrong one is an error of the call and not of a later request.
 * Routes are checked where they are read.
 * @throws RelayError `settings` that names the setting and repeats no value; also for a missing one
 */
export function checkSettings(given: unknown): void {
  const isOfSandbox = isObject(given) && isObject(given['sandbox'])
  const hasFolder = isObject(given) && (given['store'] === 'file' || given['store'] === 'keychain')
  const host = {
    provider: optional(SETTING_CHECKS.provider),
    providerUrl: optional(SETTING_CHECKS.providerUrl),
  }
  checkMembers(
    given,
    { ...SETTING_CHECKS, ...(hasFolder && { folder: filledText }), ...(isOfSandbox && host), sandbox },
    WORDS,
  )
}

/** {@link checkSettings} of some, in place of the defaults of others. @throws RelayError as {@link checkSettings} */
export function checkSomeSettings(given: unknown): void {
  const checks = Object.entries(SETTING_CHECKS).map(([name, check]) => [name, optional(check)] as const)
  checkMembers(given, { ...Object.fromEntries(checks), sandbox }, WORDS)
}

/** Checks routes that replace those of the settings. @throws RelayError `settings` */
export function checkRoutes(given: unknown): void {
  checkMembers({ routes: given }, { routes: SETTING_CHECKS.routes }, WORDS)
}
