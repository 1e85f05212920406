import { parseUrl } from '../base/parse-url.js'
import { sleep } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { formatDuration, systemClock, type Clock } from '../base/time.js'
import type { Provider } from '../providers/provider.js'
import { deviceCodes, deviceGrant } from './grants.js'
import type { TokenEndpoint, TokenResponse } from './token-endpoint.js'
import { TokenError, UNKNOWN_CLIENT } from './token-error.js'
import { tokenFetch, type TokenFetchOptions } from './token-fetch.js'

/** Milliseconds between two polls where the provider names none, and what `slow_down` adds (RFC 8628 sections 3.2, 3.5). */
const INTERVAL_STEP = 5_000
/** Milliseconds. A shorter interval would only cost requests, and a longer one would look like a failure. */
const MIN_INTERVAL = 1_000
const MAX_INTERVAL = 60_000
/** One hour in milliseconds. GitHub's codes live for 15 minutes, GitLab's for 5. */
const MAX_LIFETIME = 3_600_000
/** GitHub's codes have 9 characters; RFC 8628 section 6.1 advises short ones. */
const MAX_CODE_LENGTH = 64

export interface DeviceParts extends TokenFetchOptions {
  readonly provider: Pick<Provider, 'url' | 'oauth'>
  readonly clientId: string
  readonly clock?: Clock
  /** Waits between two polls. */
  readonly wait?: typeof sleep
}

/** A device flow that has begun. */
export interface DeviceSignIn {
  /** What the user enters at `address`. */
  readonly userCode: string
  readonly address: string
  /** Milliseconds from now in which the user must do so. */
  readonly lifetime: number
  /**
   * Polls until the user has decided.
   * @throws RelayError `unauthenticated` when the user refuses, `timed_out` when the code expires, otherwise as
   * {@link beginDeviceSignIn}; the reason of `signal` when it aborts, or AbortError.
   */
  awaitToken(): Promise<TokenResponse>
}

/**
 * Begins a device flow, for a user whose browser is elsewhere (RFC 8628 section 3.1).
 * @throws RelayError `not_configured`: the provider does not know the client, or the client may not use the flow ·
 * `provider_failed`, `provider_timeout`; the reason of `signal` when it aborts.
 */
export async function beginDeviceSignIn(parts: DeviceParts): Promise<DeviceSignIn> {
  const { provider, clientId, clock = systemClock } = parts
  const endpoint = { endpoints: provider.oauth, client: { id: clientId }, fetch: tokenFetch(parts) }
  const codes = await deviceCodes(endpoint).catch((error: unknown) => {
    throw toRelayError(parts, error)
  })
  const { device_code, user_code: userCode, verification_uri: address } = codes
  if (userCode.length > MAX_CODE_LENGTH || !/^https?:/.test(address) || !parseUrl(address))
    throw new RelayError('provider_failed', `${provider.url} gave an address or a code that is not usable`)
  const lifetime = Math.min(codes.expires_in * 1000, MAX_LIFETIME)
  const end = clock() + lifetime
  const interval = limited(codes.interval === undefined ? INTERVAL_STEP : codes.interval * 1000)
  return {
    userCode,
    address,
    lifetime,
    awaitToken: () => poll(parts, endpoint, device_code, { end, interval, lifetime }),
  }
}

interface Pace {
  readonly end: number
  readonly interval: number
  readonly lifetime: number
}

async function poll(
  parts: DeviceParts,
  endpoint: TokenEndpoint,
  deviceCode: string,
  { end, interval, lifetime }: Pace,
): Promise<TokenResponse> {
  const { clock = systemClock, wait = sleep, signal } = parts
  for (let pause = interval; ;) {
    await wait(Math.max(Math.min(pause, end - clock()), 0), { signal })
    if (clock() >= end) throw expired(lifetime)
    try {
      return await deviceGrant(endpoint, deviceCode)
    } catch (error) {
      signal?.throwIfAborted()
      const next = nextPause(error, pause)
      if (next === undefined) throw toRelayError(parts, error, lifetime)
      pause = next
    }
  }
}

/** The pause after an answer that is no decision (RFC 8628 section 3.5); undefined after one that is final. */
function nextPause(error: unknown, pause: number): number | undefined {
  if (!(error instanceof TokenError)) return undefined
  const { code, failure } = error
  if (code === 'authorization_pending') return pause
  if (code === 'slow_down') return pause + INTERVAL_STEP
  return failure === 'unavailable' || failure === 'timeout' ? limited(pause * 2) : undefined
}

function limited(interval: number): number {
  return Math.min(Math.max(interval, MIN_INTERVAL), MAX_INTERVAL)
}

function toRelayError({ provider, clientId, signal }: DeviceParts, error: unknown, lifetime = 0): unknown {
  signal?.throwIfAborted()
  if (!(error instanceof TokenError)) return error
  const { code = '', failure, message } = error
  if (code === 'expired_token') return expired(lifetime)
  const at = `Signing in at ${provider.url} failed`
  if (code === 'access_denied') return new RelayError('unauthenticated', `${at}: access was denied there`)
  if (code === 'device_flow_disabled')
    return new RelayError(
      'not_configured',
      `${at}: the OAuth app ${clientId} does not allow the device flow. Enable it in the app's settings there, or use relay login --with-token`,
    )
  if (failure === 'refused')
    return new RelayError(
      UNKNOWN_CLIENT.has(code) ? 'not_configured' : 'provider_failed',
      `${at} (${message}). Check RELAY_CLIENT_ID`,
    )
  return new RelayError(failure === 'timeout' ? 'provider_timeout' : 'provider_failed', `${at}: ${message}`)
}

function expired(lifetime: number): RelayError {
  return new RelayError(
    'timed_out',
    `The code was not entered within ${formatDuration(lifetime)}. Run relay login again for a new one`,
  )
}
