import { hash } from 'node:crypto'
import { z } from 'zod'
import { aborted, sleep } from '../base/abort.js'
import { probeDelay } from '../base/backoff.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import { onSleep } from '../base/on-sleep.js'
import { type Clock, systemClock } from '../base/time.js'
import { type SendOnce, sendOnce as sendOverNetwork } from '../net/client.js'
import type { Store } from '../store/kv.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sender } from '../webhook/signature.js'
import { findChannel } from './channel.js'
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
  /** Once it aborts, the tunnel is another relay's. */
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
  /** Characters of the messages that may wait. */
  readonly waiting: number
}

const LIMITS: Omit<TunnelLimits, 'message'> = {
  opening: 15_000,
  silence: 65_000,
  linger: 5000,
  replaced: 30_000,
  tick: 1000,
  steady: 10_000,
  roundTrip: 10_000,
  // 4,000 pushes of GitHub, since gosmee's server drops what relay leaves unread beyond 100.
  waiting: 33_554_432,
}
/** 15 minutes: a server that asks for a longer wait may have been repaired by then. */
const MAX_RETRY_AFTER_MS = 900_000

const TOO_LARGE = 'the tunnel dropped a message: it is larger than --max-body allows'
const GAP =
  "the tunnel's server did not store all messages that it received while relay was away: redeliver the missing ones at the code host"

/**
 * Listens on a channel and passes its deliveries to the intake, until it is disposed of. Whenever a connection ends or falls
 * silent, opens another one, at once and then after `delay`. What the old one still delivers counts too.
 * @throws RelayError `usage` for a sender whose deliveries prove themselves by a plain token
 */
export function openTunnel(options: TunnelOptions): AsyncDisposable {
  // Any reader of the channel could copy such a proof, and put another body under it.
  if (!options.scheme.provesBody)
    throw new RelayError(
      'usage',
      `A tunnel cannot be used with ${options.source}: its deliveries do not prove their body`,
    )
  const tunnel = new Tunnel(options)
  const running = tunnel.run()
  return {
    async [Symbol.asyncDispose]() {
      tunnel.stop()
      await running
    },
  }
}

/** How a connection, or the attempt to open one, ended. */
interface End {
  readonly reason: string
  /** Whether the connection was open, and long enough to count as stable. */
  readonly opened: boolean
  readonly steady: boolean
  /** Milliseconds that the server asked relay to wait. */
  readonly retryAfter: number
}

/** What there is once for a channel, whatever its connections. */
interface Channel {
  readonly url: string
  readonly messages: Messages
  readonly roundTrips: RoundTrips
  readonly position: Position
}

class Tunnel {
  readonly #options: TunnelOptions
  readonly #limits: TunnelLimits
  readonly #clock: Clock
  readonly #sendOnce: SendOnce
  readonly #delay: (failures: number) => number
  readonly #stop = new AbortController()
  #status: TunnelStatus
  #channel: Channel | undefined
  /** The connection that was opened last, and what it delivers while another is opened. */
  #newest: { readonly connection: Connection; overlap?: Overlap } | undefined

  constructor(options: TunnelOptions) {
    const { clock = systemClock, sendOnce = sendOverNetwork, maxBody, limits } = options
    this.#options = options
    this.#limits = { ...LIMITS, message: 2 * maxBody + MAX_AROUND_BODY, ...limits }
    this.#clock = clock
    this.#sendOnce = sendOnce
    this.#delay = options.delay ?? ((failures) => probeDelay(failures, Math.random))
    const unknown = { url: null, why: null, attempt: 0, retryAt: null, roundTrip: null }
    this.#status = { state: 'connecting', since: clock(), ...unknown }
  }

  stop(): void {
    this.#stop.abort()
  }

  /** Connects again and again until it is stopped. Resolves once everything that arrived has been handled. Does not reject. */
  async run(): Promise<void> {
    const { signal } = this.#stop
    let attempt = 0
    let isAtOnce = false
    while (!signal.aborted) {
      const { reason, opened, steady, retryAfter } = await this.#connect()
      if (signal.aborted) break
      if (steady) attempt = 0
      attempt++
      // At once after a connection that was open, unless it was not stable: a server that accepts and closes must not be flooded.
      if (attempt === 1) isAtOnce = opened
      const failures = isAtOnce ? attempt - 1 : attempt
      const own = failures === 0 ? 0 : this.#delay(failures)
      const ms = Math.max(own, Math.min(retryAfter, MAX_RETRY_AFTER_MS))
      this.#change({ state: 'waiting', why: reason, attempt, retryAt: this.#clock() + ms })
      await this.#pause(ms, signal)
    }
    // It ends after those that it replaced.
    if (this.#newest) await aborted(this.#newest.connection.ended)
    await this.#channel?.messages.close()
    await this.#channel?.position.save()
  }

  /** Opens a connection. Resolves once another one is needed. Meanwhile this one is read on. Does not reject. */
  async #connect(): Promise<End> {
    try {
      this.#channel ??= await this.#openChannel()
      const connection = await this.#open(this.#channel)
      const opened = this.#clock()
      const { url } = this.#channel
      this.#change({ state: 'connected', url, why: null, attempt: 0, retryAt: null, roundTrip: null })
      const check = new AbortController()
      const checking = this.#check(this.#channel, check.signal)
      await aborted(connection.lost)
      check.abort()
      await checking
      const steady = this.#clock() - opened >= this.#limits.steady
      return { reason: String(connection.lost.reason), opened: true, steady, retryAfter: 0 }
    } catch (thrown) {
      const never = { opened: false, steady: false }
      if (thrown instanceof NotConnected)
        return { reason: thrown.message, ...never, retryAfter: thrown.retryAfter ?? 0 }
      const { message: reason, retryAfter = 0 } = toRelayError(thrown)
      return { reason, ...never, retryAfter: retryAfter * 1000 }
    }
  }

  /** @throws RelayError `provider_failed` if the server does not create a channel; `storage`. */
  async #openChannel(): Promise<Channel> {
    const { address, store, lost } = this.#options
    const { signal } = this.#stop
    const url = this.#status.url ?? (await findChannel(address, { store, sendOnce: this.#sendOnce, signal }))
    this.#change({ url })
    const position = new Position(store, url, lost)
    await position.load()
    const { scheme } = this.#options
    const roundTrips = new RoundTrips({
      url,
      scheme,
      sendOnce: this.#sendOnce,
      limit: this.#limits.roundTrip,
    })
    const messages = new Messages({
      ...this.#options,
      maxWaiting: this.#limits.waiting,
      isOwn: (message, lines) => roundTrips.isOwn(message, lines),
      onHandled: (id) => position.handled(id),
      signal,
    })
    return { url, messages, roundTrips, position }
  }

  /** @throws NotConnected */
  async #open({ url, messages, position }: Channel): Promise<Connection> {
    const { log } = this.#options
    const throttle = createLogThrottle(log)
    const old = this.#newest
    const overlap = new Overlap()
    // From its request on, both may deliver the same message.
    if (old) old.overlap = overlap
    const connection = await openConnection({
      url,
      lastEventId: position.read,
      sendOnce: this.#sendOnce,
      clock: this.#clock,
      limits: this.#limits,
      async ready() {
        // What is still on its way on the old connection comes first.
        if (old) await aborted(old.connection.ended)
        await messages.room()
      },
      onMessage(text, id) {
        if (overlap.has(text)) return
        own.overlap?.add(text)
        position.reads(id)
        messages.take(text, id)
      },
      onTooLarge: () => throttle(TOO_LARGE, () => log.warn(TOO_LARGE)),
      onGap: () => log.warn(GAP),
      signal: this.#stop.signal,
    })
    const own: { connection: Connection; overlap?: Overlap } = { connection }
    old?.connection.replace()
    this.#newest = own
    return connection
  }

  /** Sends messages to itself until one comes back. */
  async #check({ roundTrips }: Channel, signal: AbortSignal): Promise<void> {
    let before: string | undefined
    for (let failures = 1; ; failures++) {
      const { outcome, retryAfter = 0 } = await roundTrips.make(signal)
      if (signal.aborted) return
      if (outcome !== before) this.#change({ roundTrip: outcome })
      if (outcome === 'ok') return
      before = outcome
      await this.#pause(Math.max(this.#delay(failures), retryAfter), signal)
    }
  }

  /** Waits, but no longer than until the machine has slept. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const ignore = onSleep(() => woken.abort(), { clock: this.#clock, every: this.#limits.tick })
    await sleep(ms, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {})
    ignore()
  }

  #change(to: Partial<Omit<TunnelStatus, 'since'>>): void {
    const { state = this.#status.state } = to
    const since = state === this.#status.state ? this.#status.since : this.#clock()
    this.#status = { ...this.#status, ...to, since }
    this.#options.onStatus(this.#status)
  }
}

/** Messages of a connection that the one that replaces it may deliver too. Beyond this many, the journal finds the duplicates. */
const MAX_SEEN = 65_536
/** New messages after which no further one is expected: servers may mix up neighbours. */
const MAX_MIXED = 256

/** What a connection has delivered since the next one was requested, which does not count when that delivers it too. */
class Overlap {
  readonly #seen = new Set<string>()
  #unseen = 0

  add(text: string): void {
    this.#seen.add(digestOf(text))
    if (this.#seen.size > MAX_SEEN) for (const oldest of this.#seen) if (this.#seen.delete(oldest)) break
  }

  /** True once for each message. */
  has(text: string): boolean {
    if (this.#seen.size === 0) return false
    if (this.#seen.delete(digestOf(text))) return true
    if (++this.#unseen > MAX_MIXED) this.#seen.clear()
    return false
  }
}

function digestOf(text: string): string {
  return hash('sha256', text, 'base64url')
}

const POSITION_KEY = 'tunnel-position'
const positionRecord = z.object({ v: z.literal(1), url: z.string(), id: z.string() })
/** Milliseconds between two writes. What a crash repeats is found to be a duplicate. */
const SAVE_MS = 1000
/**
 * Ids of messages in a Redis stream, which a gosmee server can continue from. smee's ids count the messages of a connection
 * and lead nowhere.
 * @see https://redis.io/docs/latest/develop/data-types/streams/#entry-ids
 */
const STREAM_ID = /^\d{1,20}-\d{1,20}$/

/** How far relay has read a channel, so that a server that keeps messages can continue after that. */
class Position {
  readonly #store: Store
  readonly #url: string
  readonly #lost: AbortSignal | undefined
  /** The id of the last message that was read; undefined if the server cannot continue from one. */
  read: string | undefined
  #handled: string | undefined
  #saved: string | undefined
  #savedAt = -Infinity

  constructor(store: Store, url: string, lost: AbortSignal | undefined) {
    this.#store = store
    this.#url = url
    this.#lost = lost
  }

  /** @throws RelayError `storage` */
  async load(): Promise<void> {
    const saved = positionRecord.safeParse(await this.#store.get(POSITION_KEY)).data
    if (saved?.url === this.#url) this.read = this.#handled = this.#saved = saved.id
  }

  reads(id: string): void {
    if (STREAM_ID.test(id)) this.read = id
  }

  async handled(id: string): Promise<void> {
    if (!STREAM_ID.test(id)) return
    this.#handled = id
    if (performance.now() - this.#savedAt >= SAVE_MS) await this.save()
  }

  /** Does not reject: what cannot be stored is a second out of date. */
  async save(): Promise<void> {
    const id = this.#handled
    if (id === undefined || id === this.#saved || this.#lost?.aborted === true) return
    this.#savedAt = performance.now()
    this.#saved = id
    await this.#store.put(POSITION_KEY, { v: 1, url: this.#url, id }).catch(() => (this.#saved = undefined))
  }
}
