import { probeDelay } from '../base/backoff.js'
import { Disposal } from '../base/disposal.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { WebhookSecrets } from '../base/settings.js'
import { systemClock, type Clock } from '../base/time.js'
import { sendOnce as sendOverNetwork, type SendOnce } from '../net/send-once.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/contract.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import { openChannel } from './channel.js'
import type { ConnectionLimits } from './connection.js'
import { LARGE_LIMITS, type LargeLimits } from './large.js'
import { type Listener, openListener } from './listener.js'
import { MAX_AROUND_BODY } from './message.js'
import { QUEUE_LIMITS, type QueueLimits } from './queue.js'
import { type ConnectionEnd, createReconnect } from './reconnect.js'
import { createStatus, type TunnelStatus } from './state.js'
import { pause } from './watchdog.js'

export interface TunnelOptions {
  /**
   * A channel's address; or a smee server's, where relay creates a channel and saves it for the profile; or `new`, for
   * another channel in place of the saved one.
   */
  readonly address: string
  readonly intake: Intake
  readonly refusals: Refusals
  readonly provider: Pick<Provider, 'webhook'>
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
const LIMITS = {
  opening: 15 * SECOND,
  silence: 65 * SECOND,
  linger: 5 * SECOND,
  tick: SECOND,
  steady: 10 * SECOND,
  roundTrip: 10 * SECOND,
  queue: QUEUE_LIMITS,
  large: LARGE_LIMITS,
}

/**
 * Listens on a channel and passes its deliveries to the intake, until it is disposed of. Whenever a connection ends or falls
 * silent, opens another one, at once and then after 1, 2, 4 … 60 s ±20 %. What the old one still delivers counts too.
 */
export function openTunnel(options: TunnelOptions): AsyncDisposable {
  const stop = new AbortController()
  const running = run(options, stop.signal)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

async function run(options: TunnelOptions, signal: AbortSignal): Promise<void> {
  const { clock = systemClock, delay = (failures) => probeDelay(failures, Math.random) } = options
  const { sendOnce = sendOverNetwork, store } = options
  const limits = { ...LIMITS, event: 2 * options.maxBody + MAX_AROUND_BODY, ...options.limits }
  const status = createStatus(clock, options.onStatus)
  const reconnect = createReconnect(delay)
  await using closing = new Disposal()
  const open = async (): Promise<Listener> => {
    const url = await openChannel(options.address, { store, sendOnce, signal })
    status.change({ url })
    return closing.use(await openListener({ url, options, limits, status, sendOnce, clock, delay, signal }))
  }
  let listener: Listener | undefined
  const connect = async (): Promise<ConnectionEnd> => {
    try {
      listener ??= await open()
      return await listener.connect()
    } catch (thrown) {
      const { message: reason, retryAfter = 0 } = toRelayError(thrown)
      return { reason, opened: false, steady: false, retryAfter: retryAfter * SECOND }
    }
  }
  for (;;) {
    const end = await connect()
    if (signal.aborted) return
    const { attempt, ms } = reconnect(end)
    status.change({ state: 'waiting', why: end.reason, attempt, retryAt: clock() + ms })
    await pause(ms, { clock, tick: limits.tick, signal })
    if (signal.aborted) return
  }
}
