import type { Log } from '../base/log.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { SendOnce } from '../net/send-once.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/kv.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { ConnectionLimits } from './connection.js'
import { LARGE_LIMITS, type LargeLimits } from './large.js'
import { MAX_AROUND_BODY } from './message.js'
import { QUEUE_LIMITS, type QueueLimits } from './queue.js'
import type { TunnelStatus } from './state.js'

export interface TunnelOptions {
  /**
   * A channel's address; or a smee server's, where relay creates a channel and saves it for the profile; or `new`, for
   * another channel in place of the saved one.
   */
  readonly address: string
  readonly intake: Intake
  readonly refusals: Refusals
  readonly provider: Pick<Provider, 'name' | 'webhook'>
  readonly secrets: WebhookSecrets
  /** Holds the saved channel and the progress. */
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
  /** Milliseconds until the next attempt after this many failures in a row. */
  readonly delay?: ((failures: number) => number) | undefined
}

export interface TunnelLimits extends ConnectionLimits {
  /** Milliseconds after which a connection counts as stable, which resets the backoff. */
  readonly steady: number
  /** Milliseconds in which the message to itself must come back. */
  readonly roundTrip: number
  readonly queue: QueueLimits
  readonly large: LargeLimits
}

const SECOND = 1000
const LIMITS: Omit<TunnelLimits, 'event'> = {
  opening: 15 * SECOND,
  silence: 65 * SECOND,
  linger: 5 * SECOND,
  tick: SECOND,
  steady: 10 * SECOND,
  roundTrip: 10 * SECOND,
  queue: QUEUE_LIMITS,
  large: LARGE_LIMITS,
}

/** The limits of a tunnel with these options. */
export function limitsOf({ maxBody, limits }: TunnelOptions): TunnelLimits {
  return { ...LIMITS, event: 2 * maxBody + MAX_AROUND_BODY, ...limits }
}
