import { randomInt } from 'node:crypto'
import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import { randomSecret } from './secrets.js'

/** Seconds in which the user must enter the code. */
export const DEVICE_LIFETIME_S = 900
/** Seconds between two polls, and what `slow_down` adds to them (RFC 8628 section 3.5). */
export const POLL_INTERVAL_S = 5
/** Maximum number of device codes; the oldest are removed first. */
const LIMIT = 1000
/** Codes that users may enter in an hour, so that they cannot be guessed (RFC 8628 section 5.1). */
const ENTRIES_PER_HOUR = 50
const HOUR_MS = 3_600_000
/** Consonants, so that no code is a word (RFC 8628 section 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'

/** A device that waits for the user's decision. */
export interface DeviceRequest {
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Eight letters with a hyphen in the middle. */
  readonly userCode: string
  readonly expiresAt: number
  readonly interval: number
  readonly polledAt: number | undefined
  readonly decision: 'pending' | 'granted' | 'denied'
}

export interface PollFailure {
  readonly error:
    | 'authorization_pending'
    | 'slow_down'
    | 'expired_token'
    | 'access_denied'
    | 'incorrect_device_code'
  /** Seconds until the next poll, after `slow_down`. */
  readonly interval?: number
}

/**
 * Codes of the device flow: a device polls with one while the user enters the other
 * (https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow).
 */
export class DeviceCodes {
  readonly #clock: Clock
  readonly #requests = new BoundedMap<string, DeviceRequest>(LIMIT)
  #entries: readonly number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  issue(clientId: string, scopes: readonly string[]): { deviceCode: string; userCode: string } {
    const [deviceCode, userCode] = [randomSecret(), randomUserCode()]
    this.#requests.set(deviceCode, {
      clientId,
      scopes,
      userCode,
      expiresAt: this.#clock() + DEVICE_LIFETIME_S * 1000,
      interval: POLL_INTERVAL_S,
      polledAt: undefined,
      decision: 'pending',
    })
    return { deviceCode, userCode }
  }

  /** Finds the undecided request with the code that a user entered, in any case and with or without its hyphen. */
  enter(text: string): DeviceRequest | 'unknown' | 'too_many' {
    const now = this.#clock()
    this.#entries = this.#entries.filter((at) => now - at < HOUR_MS)
    if (this.#entries.length >= ENTRIES_PER_HOUR) return 'too_many'
    this.#entries = [...this.#entries, now]
    const letters = text.toUpperCase().replace(/[^A-Z]/g, '')
    const [, request] = this.#undecided(`${letters.slice(0, 4)}-${letters.slice(4)}`)
    return request ?? 'unknown'
  }

  /** Records the user's decision. False when the code has expired meanwhile. */
  decide(userCode: string, decision: 'granted' | 'denied'): boolean {
    const [deviceCode, request] = this.#undecided(userCode)
    if (deviceCode === undefined || !request) return false
    this.#requests.set(deviceCode, { ...request, decision })
    return true
  }

  /** The granted request, which uses the code up, or GitHub's error. */
  poll(clientId: string, deviceCode: string): DeviceRequest | PollFailure {
    const request = this.#requests.get(deviceCode)
    if (!request || request.clientId !== clientId) return { error: 'incorrect_device_code' }
    const now = this.#clock()
    if (now >= request.expiresAt) return { error: 'expired_token' }
    if (request.polledAt !== undefined && now - request.polledAt < request.interval * 1000) {
      const interval = request.interval + POLL_INTERVAL_S
      this.#requests.set(deviceCode, { ...request, interval, polledAt: now })
      return { error: 'slow_down', interval }
    }
    this.#requests.set(deviceCode, { ...request, polledAt: now })
    if (request.decision === 'pending') return { error: 'authorization_pending' }
    if (request.decision === 'denied') return { error: 'access_denied' }
    this.#requests.delete(deviceCode)
    return request
  }

  #undecided(userCode: string): [string, DeviceRequest] | [undefined, undefined] {
    const now = this.#clock()
    const found = [...this.#requests].find(
      ([, request]) =>
        request.userCode === userCode && request.decision === 'pending' && now < request.expiresAt,
    )
    return found ?? [undefined, undefined]
  }
}

function randomUserCode(): string {
  const letter = (): string => ALPHABET.charAt(randomInt(ALPHABET.length))
  const four = (): string => Array.from({ length: 4 }, letter).join('')
  return `${four()}-${four()}`
}
