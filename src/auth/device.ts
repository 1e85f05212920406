import type { Command } from '../base/command-line.js'
import { sleep } from '../base/wait.js'
import { type ErrorKind, RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import type { Secret } from '../base/secret.js'
import { formatDuration, systemClock } from '../base/time.js'
import type { OAuthHost } from '../codehost/host.js'
import {
  type CallOptions,
  type IssuedToken,
  isUnknownClient,
  NO_DEVICE_FLOW,
  TokenEndpoint,
  TokenError,
} from './token-endpoint.js'

/** Default interval between two polls in milliseconds, and the increase by `slow_down` (RFC 8628 sections 3.2, 3.5). */
const INTERVAL = 5_000
/**
 * Limits of the interval in milliseconds. A shorter one would only cost requests, and a longer one would look like a
 * failure.
 */
const MIN_INTERVAL = 1_000
const MAX_INTERVAL = 60_000

export interface DeviceParts extends CallOptions {
  readonly host: OAuthHost
  /** The client. Only some code hosts want its secret for the flow. */
  readonly client: { readonly id: string; readonly secret?: Secret | undefined }
  readonly command: Command
  /** Waits between two polls. A test replaces it. */
  readonly wait?: typeof sleep
}

/**
 * Begins a device flow for a user whose browser is elsewhere (RFC 8628 section 3.1). The user enters `userCode` at
 * `address` within `lifetime` milliseconds, while `awaitToken` polls. Stores nothing.
 * @throws RelayError `not_configured`: the code host does not know the client, or the client may not use the flow ·
 * `provider_failed`, `provider_timeout`; from `awaitToken` also `unauthenticated` when the user refuses, `timed_out`
 * when the code expires; the reason of `signal`, or an AbortError, when it aborts
 */
export async function beginDeviceSignIn(parts: DeviceParts) {
  const { host, client, clock = systemClock, wait = sleep, signal } = parts
  const { id, secret } = client
  const endpoint = new TokenEndpoint(host, host.oauth.deviceTakesSecret ? { id, secret } : { id }, parts)
  const codes = await endpoint.deviceCodes().catch((error: unknown) => {
    throw explained(parts, error)
  })
  const { user_code: userCode, verification_uri: address, interval } = codes
  if (!/^https?:/.test(address) || !parseUrl(address))
    throw new RelayError('provider_failed', `${host.url} gave an address that is not usable`)
  const lifetime = codes.expires_in * 1000
  const end = clock() + lifetime
  const awaitToken = async (): Promise<IssuedToken> => {
    let pause = limited(interval === undefined ? INTERVAL : interval * 1000)
    for (;;) {
      await wait(Math.max(Math.min(pause, end - clock()), 0), { signal })
      if (clock() >= end) throw expired(parts, lifetime)
      try {
        return await endpoint.deviceToken(codes.device_code)
      } catch (error) {
        const next = pauseAfter(error, pause)
        if (next === undefined) throw explained(parts, error, lifetime)
        pause = next
      }
    }
  }
  return { userCode, address, lifetime, awaitToken }
}

/**
 * Delay after a response without a decision (RFC 8628 section 3.5), or after a failed call. Undefined after a final
 * response.
 */
function pauseAfter(error: unknown, pause: number): number | undefined {
  if (!(error instanceof TokenError)) return undefined
  if (error.code === 'authorization_pending') return pause
  if (error.code === 'slow_down') return pause + INTERVAL
  return error.passing ? limited(pause * 2) : undefined
}

function limited(interval: number): number {
  return Math.min(Math.max(interval, MIN_INTERVAL), MAX_INTERVAL)
}

/** Adds advice to the error of a call. Throws the signal's reason if it aborted. */
function explained(parts: DeviceParts, error: unknown, lifetime = 0): unknown {
  const { host, client, command, signal } = parts
  signal?.throwIfAborted()
  if (!(error instanceof TokenError)) return error
  const { code, message } = error
  const failed = (kind: ErrorKind, why: string) =>
    new RelayError(kind, `Signing in at ${host.url} failed${why}`)
  if (code === undefined) return failed(error.kind, `: ${message}`)
  if (code === 'expired_token') return expired(parts, lifetime)
  if (code === 'access_denied') return failed('unauthenticated', ': access was denied there')
  if (code === NO_DEVICE_FLOW) return noDeviceFlow(parts)
  if (code === 'device_flow_disabled')
    return failed(
      'not_configured',
      `: the OAuth app ${client.id} does not allow the device flow. Enable it in the app's settings there, or use ${command('login --with-token')}`,
    )
  const kind = isUnknownClient(error) ? 'not_configured' : error.kind
  const isOpen = isUnknownClient(error) && host.oauth.deviceTakesSecret && client.secret === undefined
  const more = isOpen
    ? `, and set RELAY_CLIENT_SECRET: a confidential application needs its secret in this shell, too. Or use ${command('login --no-browser')}`
    : ''
  return failed(kind, ` (${message}). Check RELAY_CLIENT_ID${more}`)
}

/** Error for a code host that has no device flow. */
export function noDeviceFlow({ host, command }: Pick<DeviceParts, 'host' | 'command'>): RelayError {
  return new RelayError(
    'usage',
    `${host.url} has no device flow. Use ${command('login --no-browser')}, or ${command('login --with-token')}`,
  )
}

function expired({ command }: DeviceParts, lifetime: number): RelayError {
  return new RelayError(
    'timed_out',
    `The code was not entered within ${formatDuration(lifetime)}. Run ${command('login')} again for a new one`,
  )
}
