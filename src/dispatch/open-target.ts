import { readFileSync } from 'node:fs'
import { errorReason, RelayError, toRelayError } from '../base/errors.js'
import type { Limits } from '../base/seams.js'
import type { Clock } from '../base/time.js'
import { type Header, isSendable } from '../http/headers.js'
import type { Entry } from '../journal/types.js'
import { type Environment, openCommandTarget } from './command-target.js'
import { askHttpTarget, type Question, openHttpTarget, type RequestBuilder } from './http-target.js'
import type { Route } from './routes.js'
import { noResponse, type OpenTarget, type Reply } from './target.js'
import { expanded, variablesIn } from './variables.js'

export interface TargetParts {
  /** Environment of commands and of the headers of routes. */
  readonly env: Environment
  readonly limits: Limits
  readonly clock: Clock
  /** Converts an entry to the request for a route's address. Default: the entry as received. */
  readonly sendable?: ((entry: Entry, route: Route) => ReturnType<RequestBuilder>) | undefined
  /** True: neither attempts nor the waits between them keep the process alive. Default: false. */
  readonly background?: boolean | undefined
}

/** Time limit of an attempt along a route, in milliseconds. */
export function timeLimitOf(
  { target, timeout }: Pick<Route, 'target' | 'timeout'>,
  limits: Pick<Limits, 'http' | 'command'>,
): number {
  return timeout ?? (target.kind === 'command' ? limits.command : limits.http)
}

/** Opens the target of a route that {@link checkTarget} accepts. */
export function openTarget(
  route: Route,
  { env, limits, clock, background, sendable: ofRoute }: TargetParts,
): OpenTarget {
  const { target, reply } = route
  const limit = timeLimitOf(route, limits)
  if (target.kind === 'command')
    return openCommandTarget(target.command, {
      env,
      limit,
      grace: limits.grace,
      background,
    })
  try {
    return openHttpTarget(target.url, {
      clock,
      limit,
      sendable: ofRoute && ((entry) => ofRoute(entry, route)),
      headers: headersOf(route, env),
      connection: { verify: route.verify, ca: certificatesOf(route), background },
      replies: reply !== undefined,
    })
  } catch (error) {
    // The file of certificates was removed after the check.
    const { message } = toRelayError(error)
    return { deliver: async () => noResponse('unreachable', message), [Symbol.asyncDispose]: async () => {} }
  }
}

/**
 * Passes a question on to the target of a route that replies. Undefined if there is no answer within these milliseconds,
 * or the target is a command.
 */
export async function askTarget(
  route: Route,
  question: Question,
  {
    env,
    within: limit,
    signal,
  }: { readonly env: Environment; readonly within: number; readonly signal: AbortSignal },
): Promise<Reply | undefined> {
  const { target } = route
  if (target.kind === 'command') return undefined
  const connection = { verify: route.verify, ca: certificatesOf(route) }
  return askHttpTarget(target.url, question, { limit, headers: headersOf(route, env), connection }, signal)
}

/**
 * Checks what the target of a route needs of this process, so that no delivery finds it missing.
 * @throws RelayError `settings` for a variable that is not set or cannot be in a header, and for a file of certificates
 * that cannot be read
 */
export function checkTarget(route: Route, env: Environment): void {
  const { headers = {}, label } = route
  for (const [name, text] of Object.entries(headers)) {
    const missing = variablesIn(text, name).find((variable) => (env[variable] ?? '') === '')
    if (missing !== undefined)
      throw new RelayError(
        'settings',
        `The route ${label} needs the variable ${missing} for its header ${name}, and it is not set`,
      )
    if (!isSendable([name, expanded(text, env)]))
      throw new RelayError(
        'settings',
        `The route ${label} cannot send its header ${name}: a variable in it has a line end or another control character`,
      )
  }
  certificatesOf(route)
}

function headersOf({ headers = {} }: Route, env: Environment): Header[] {
  return Object.entries(headers).map(([name, text]) => [name, expanded(text, env)])
}

/** Largest file of certificates: those of all public authorities take a quarter of it. Bytes. */
const MAX_CERTIFICATES = 1_048_576

/** Reads the certificates of a route. @throws RelayError `settings` */
function certificatesOf({ ca, label }: Route): string | undefined {
  if (ca === undefined) return undefined
  const fail = (why: string): RelayError => new RelayError('settings', `The route ${label}: ${ca} ${why}`)
  let text: string
  try {
    text = readFileSync(ca, 'utf8')
  } catch (error) {
    throw fail(`cannot be read (${errorReason(error)})`)
  }
  if (text.length > MAX_CERTIFICATES) throw fail('is larger than 1 MiB')
  if (!text.includes('-----BEGIN CERTIFICATE-----')) throw fail('has no certificate in PEM')
  return text
}
