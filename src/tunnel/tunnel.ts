import { probeDelay } from '../base/backoff.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { WebhookSecrets } from '../base/settings.js'
import { systemClock, type Clock } from '../base/time.js'
import { outboundFetch } from '../providers/fetch.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/contract.js'
import type { Intake } from '../webhook/intake.js'
import { openChannel } from './channel.js'
import { createEntrance } from './entrance.js'
import { createQueue, QUEUE_LIMITS, type QueueLimits } from './queue.js'
import { createReceiver, type ReceiveParts } from './receive.js'
import { createRoundTrip, type RoundTrip } from './round-trip.js'
import { listenToSmee, type SmeeLimits } from './smee.js'
import type { TunnelStatus } from './state.js'
import { pause } from './watchdog.js'

export interface TunnelOptions {
  /** A channel's address; or a smee server's, on which a channel is made and remembered for the profile. */
  readonly address: string
  readonly intake: Intake
  readonly provider: Pick<Provider, 'webhook'>
  readonly secrets: WebhookSecrets
  /** Where the channel is remembered. */
  readonly store: Store
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly log: Log
  /** Told of each change. Must not throw. */
  readonly onStatus: (status: TunnelStatus) => void
  readonly clock?: Clock | undefined
  readonly fetch?: typeof fetch | undefined
  readonly limits?: Partial<TunnelLimits> | undefined
  /** Milliseconds until the next attempt, after so many that failed in a row. */
  readonly delay?: ((failures: number) => number) | undefined
}

export interface TunnelLimits extends SmeeLimits {
  /** Milliseconds after which a connection counts as good, so that the next attempt is soon again. */
  readonly steady: number
  /** Milliseconds a message to oneself may take. */
  readonly roundTrip: number
  readonly queue: QueueLimits
}

const SECOND = 1000
const LIMITS = {
  opening: 15 * SECOND,
  silence: 65 * SECOND,
  tick: SECOND,
  steady: 10 * SECOND,
  roundTrip: 10 * SECOND,
  queue: QUEUE_LIMITS,
}
/** What a message may hold besides the body: Node takes 16 KiB of headers, and JSON may write a character in six. */
const AROUND_BODY = 131_072

/**
 * Keeps listening on a channel, and gives what comes to the intake, until it is disposed of. Whatever ends a connection,
 * there is a next: after 1, 2, 4 … 60 s ±20 %.
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
    const { why, steady } = await tunnel.connect()
    if (signal.aborted) return
    if (steady) failures = 1
    const ms = delay(failures)
    tunnel.status.change({ state: 'waiting', why, attempt: failures, retryAt: clock() + ms })
    await pause(ms, { clock, tick: tunnel.limits.tick, signal })
    if (signal.aborted) return
  }
}

interface Timing {
  readonly clock: Clock
  readonly delay: (failures: number) => number
}

function createTunnel(options: TunnelOptions, { clock, delay }: Timing, signal: AbortSignal) {
  const { address, store, maxBody, fetch = outboundFetch, onStatus } = options
  const limits: TunnelLimits = { ...LIMITS, event: 2 * maxBody + AROUND_BODY, ...options.limits }
  const status = createStatus(clock, onStatus)
  const roundTrip = createRoundTrip(options.provider.webhook)
  const queue = createQueue(createReceiver(receiveParts(options, roundTrip)), limits.queue)
  const { onMessage, onTooLarge } = createEntrance(queue, options.log)
  let checking: Promise<void> | undefined
  const check = (url: string): Promise<void> => {
    const run = (): Promise<string> => roundTrip.run(url, { fetch, limit: limits.roundTrip, signal })
    const wait = (failures: number): Promise<void> =>
      pause(delay(failures), { clock, tick: limits.tick, signal })
    return untilItIsBack(run, status, wait, signal)
  }
  const listen = async (): Promise<Ended> => {
    const url = await openChannel(address, { store, fetch, signal })
    let opened = Infinity
    const onOpen = (): void => {
      opened = clock()
      status.change({ state: 'connected', url, why: null, attempt: 0, retryAt: null })
      if (status.now().roundTrip !== 'ok') checking ??= check(url).finally(() => (checking = undefined))
    }
    const why = await listenToSmee({ url, fetch, clock, limits, onOpen, onMessage, onTooLarge, signal })
    return { why, steady: clock() - opened >= limits.steady }
  }
  return {
    limits,
    status,
    /** One connection, from its beginning to its end. */
    connect: () =>
      listen().catch((error: unknown): Ended => ({ why: toRelayError(error).message, steady: false })),
    async [Symbol.asyncDispose]() {
      await checking
      await queue[Symbol.asyncDispose]()
    },
  }
}

/** Sends messages to itself until one has come back, or nothing is connected any more. Tells of an outcome that is new. */
async function untilItIsBack(
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

interface Ended {
  readonly why: string
  /** Whether it had stood for a while. */
  readonly steady: boolean
}

/** Tells of the whole status whenever a part of it changes; `since` is when its state did. */
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

function receiveParts(
  { intake, secrets, provider, maxBody, log }: TunnelOptions,
  { isOwn }: RoundTrip,
): ReceiveParts {
  return { intake, secrets, scheme: provider.webhook, maxBody, log, isOwn }
}
