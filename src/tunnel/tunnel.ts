import { probeDelay } from '../base/backoff.js'
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
import { createIngress } from './ingress.js'
import { createLargeMessages, LARGE_LIMITS, type LargeLimits } from './large.js'
import { MAX_AROUND_BODY } from './message.js'
import { createQueue, QUEUE_LIMITS, type QueueLimits } from './queue.js'
import { createReceiver } from './receive.js'
import { createRoundTrip } from './round-trip.js'
import { listenToSmee, type SmeeLimits } from './smee.js'
import type { TunnelStatus } from './state.js'
import { pause } from './watchdog.js'

export interface TunnelOptions {
  /** A channel's address; or a smee server's, where relay creates a channel and saves it for the profile. */
  readonly address: string
  readonly intake: Intake
  readonly refusals: Refusals
  readonly provider: Pick<Provider, 'webhook'>
  readonly secrets: WebhookSecrets
  /** Holds the saved channel. */
  readonly store: Store
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

export interface TunnelLimits extends SmeeLimits {
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
  tick: SECOND,
  steady: 10 * SECOND,
  roundTrip: 10 * SECOND,
  queue: QUEUE_LIMITS,
  large: LARGE_LIMITS,
}

/**
 * Listens on a channel and passes its deliveries to the intake, until it is disposed of. Reconnects whenever a connection
 * ends, after 1, 2, 4 … 60 s ±20 %.
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
  await using tunnel = createTunnel(options, { clock, delay }, signal)
  for (let failures = 1; ; failures++) {
    const { reason, steady } = await tunnel.connect()
    if (signal.aborted) return
    if (steady) failures = 1
    const ms = delay(failures)
    tunnel.status.change({ state: 'waiting', why: reason, attempt: failures, retryAt: clock() + ms })
    await pause(ms, { clock, tick: tunnel.limits.tick, signal })
    if (signal.aborted) return
  }
}

interface Timing {
  readonly clock: Clock
  readonly delay: (failures: number) => number
}

function createTunnel(options: TunnelOptions, { clock, delay }: Timing, signal: AbortSignal) {
  const { address, store, maxBody, sendOnce = sendOverNetwork, onStatus } = options
  const limits: TunnelLimits = { ...LIMITS, event: 2 * maxBody + MAX_AROUND_BODY, ...options.limits }
  const status = createStatus(clock, onStatus)
  const roundTrip = createRoundTrip(options.provider.webhook)
  const { secrets, intake, refusals, log } = options
  const unpackParts = { secrets, scheme: options.provider.webhook, maxBody }
  const large = createLargeMessages(unpackParts, signal, limits.large)
  const receive = createReceiver({ ...unpackParts, intake, refusals, log, large, isOwn: roundTrip.isOwn })
  const queue = createQueue(receive, limits.queue)
  const { onMessage, onTooLarge } = createIngress(queue, log)
  let checking: Promise<void> | undefined
  const check = (url: string): Promise<void> => {
    const run = (): Promise<string> => roundTrip.run(url, { sendOnce, limit: limits.roundTrip, signal })
    const wait = (failures: number): Promise<void> =>
      pause(delay(failures), { clock, tick: limits.tick, signal })
    return repeatRoundTrip(run, status, wait, signal)
  }
  const listen = async (): Promise<ConnectionEnd> => {
    const url = await openChannel(address, { store, sendOnce, signal })
    let opened = Infinity
    const onOpen = (): void => {
      opened = clock()
      status.change({ state: 'connected', url, why: null, attempt: 0, retryAt: null })
      if (status.now().roundTrip !== 'ok') checking ??= check(url).finally(() => (checking = undefined))
    }
    const reason = await listenToSmee({ url, sendOnce, clock, limits, onOpen, onMessage, onTooLarge, signal })
    return { reason, steady: clock() - opened >= limits.steady }
  }
  return {
    limits,
    status,
    /** Opens one connection. Resolves when it ends. */
    connect: () =>
      listen().catch((error: unknown): ConnectionEnd => ({
        reason: toRelayError(error).message,
        steady: false,
      })),
    async [Symbol.asyncDispose]() {
      await checking
      await queue[Symbol.asyncDispose]()
      await large[Symbol.asyncDispose]()
    },
  }
}

/** Sends messages to itself until one comes back or the connection ends. Reports only results that differ. */
async function repeatRoundTrip(
  run: () => Promise<string>,
  status: Status,
  wait: (failures: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 1; !signal.aborted && status.now().state === 'connected'; failures++) {
    const roundTrip = await run()
    if (signal.aborted) return
    const before = status.now()
    if (before.state === 'connected' && roundTrip !== before.roundTrip) status.change({ roundTrip })
    if (roundTrip === 'ok') return
    await wait(failures)
  }
}

interface ConnectionEnd {
  readonly reason: string
  /** Whether the connection lasted long enough to count as stable. */
  readonly steady: boolean
}

/** The tunnel's status. Each change reports the whole status. */
interface Status {
  readonly now: () => TunnelStatus
  readonly change: (to: Partial<Omit<TunnelStatus, 'since'>>) => void
}

function createStatus(clock: Clock, onStatus: TunnelOptions['onStatus']): Status {
  let status: TunnelStatus = { ...UNKNOWN, since: clock() }
  return {
    now: () => status,
    change(to) {
      const { state = status.state } = to
      status = { ...status, ...to, since: state === status.state ? status.since : clock() }
      onStatus(status)
    },
  }
}

const UNKNOWN: TunnelStatus = {
  state: 'connecting',
  url: null,
  since: 0,
  why: null,
  attempt: 0,
  retryAt: null,
  roundTrip: null,
}
