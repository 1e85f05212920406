import { hash } from 'node:crypto'
import { z } from 'zod'
import { aborted, deadline, onAbort } from '../base/abort.js'
import { probeDelay } from '../base/backoff.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { parseUrl } from '../base/parse-url.js'
import { DEFAULT_TUNNEL, NEW_TUNNEL } from '../base/settings.js'
import { type Clock, onSleep, systemClock } from '../base/time.js'
import { describeConnectionError } from '../net/connection-error.js'
import { parseRetryAfter } from '../net/retry-after.js'
import { type OutboundResponse, readText, type SendOnce, sendOnce as sendOverNetwork } from '../net/send-once.js'
import type { Store } from '../store/kv.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sender } from '../webhook/signature.js'
import { type Connection, type ConnectionLimits, NotConnected, openConnection } from './connection.js'
import { MAX_AROUND_BODY, Messages } from './messages.js'
import { RoundTrips } from './round-trip.js'

/** Status of a tunnel. Times are milliseconds since 1970-01-01 UTC. */
export interface TunnelStatus {
  readonly state: 'connecting' | 'connected' | 'waiting'
  /** The channel's URL, for the code host's webhook settings; null until there is a channel. Known while `waiting` too. */
  readonly url: string | null
  /** When `state` last changed. */
  readonly since: number
  /** Why the connection was lost or failed. */
  readonly why: string | null
  /** Number of the next attempt to reconnect; 0 while `connected`. */
  readonly attempt: number
  /** Time of the next attempt, while `waiting`. */
  readonly retryAt: number | null
  /** Result of the message that relay sends to itself on each connection: `ok`, or why it failed; null while unknown. */
  readonly roundTrip: string | null
}

export interface TunnelOptions extends Sender {
  /**
   * A channel's address; or a smee server's, where relay creates a channel and saves it for the profile; or `new`, for
   * another channel in place of the saved one.
   */
  readonly address: string
  /** The name of the sender. */
  readonly source: string
  readonly intake: Intake
  readonly refusals: Refusals
  /** Holds the saved channel and the position in it. */
  readonly store: Store
  /** Once it aborts, the store belongs to another process. */
  readonly lost?: AbortSignal | undefined
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly log: Log
  /** Called with each change. Must not throw. */
  readonly onStatus: (status: TunnelStatus) => void
  readonly clock?: Clock | undefined
  /** Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
  readonly limits?: Partial<TunnelLimits> | undefined
  /** Milliseconds until the next attempt after this many failures in a row. Default: 1, 2, 4 … 60 s ±20 %. */
  readonly delay?: ((failures: number) => number) | undefined
}

export interface TunnelLimits extends ConnectionLimits {
  /** Milliseconds after which a connection counts as stable, which resets the backoff. */
  readonly steady: number
  /** Milliseconds in which the message to itself must come back. */
  readonly roundTrip: number
}

const LIMITS: Omit<TunnelLimits, 'message'> = {
  opening: 15_000,
  silence: 65_000,
  linger: 5000,
  replaced: 30_000,
  tick: 1000,
  steady: 10_000,
  roundTrip: 10_000,
}
/** 15 minutes: a server that asks for a longer wait may have been repaired by then. */
const MAX_RETRY_AFTER_MS = 900_000

const TOO_LARGE = 'the tunnel dropped a message: it is larger than --max-body allows'
const GAP_TEXT =
  "the tunnel's server did not store all messages that it received while relay was away: redeliver the missing ones at the code host"

/**
 * Listens on a channel and passes its deliveries to the intake, until it is disposed of. Whenever a connection ends or falls
 * silent, opens another one, at once and then after `delay`. What the old one still delivers counts too.
 */
export function openTunnel(options: TunnelOptions): AsyncDisposable {
  const tunnel = new Tunnel(options)
  const running = tunnel.run()
  return {
    async [Symbol.asyncDispose]() {
      tunnel.stop()
      await running
    },
  }
}

class Tunnel {
}
