import { hash } from 'node:crypto'
import { z } from 'zod/mini'
import { aborted, sleep, probeDelay, onSleep } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import { shownSource } from '../base/source-names.js'
import type { TunnelStatus } from '../instance/protocol.js'
import { type SendOnce, sendOnce as sendOverNetwork } from '../net/client.js'
import type { Store } from '../store/kv.js'
import type { Source } from '../senders/source.js'
import { findChannel, recordOf } from './channel.js'
import { type Connection, LIMITS, openConnection, type TunnelLimits } from './connection.js'
import { Messages, type MessagesParts } from './messages.js'
import { askedMs, type Ended, Reconnection } from './reconnect.js'
import { RoundTrips } from './round-trip.js'

/** Options of a tunnel, including those of its source. */
export interface TunnelOptions
  extends Source, Pick<MessagesParts, 'intake' | 'refusals' | 'maxBody' | 'log' | 'clock'> {
  /**
   * A channel's address; a server's, on which relay creates a channel and saves it; or `new`, for another one in place
   * of the saved one.
   */
  readonly address: string
  /** Store for the saved channel and the position in it. */
  readonly store: Store
  /** Aborts once another relay has the tunnel. */
  readonly lost?: AbortSignal | undefined
  /** Called with each change. Must not throw. */
  readonly onStatus: (status: TunnelStatus) => void
  /** Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
  readonly limits?: Partial<TunnelLimits> | undefined
}

const UNKNOWN = { url: null, why: null, attempt: 0, retryAt: null, roundTrip: null }

const GAP =
  "the tunnel's server did not store all messages that it received while relay was away: redeliver the missing ones at"

/**
 * Key of the record with the position up to which relay has read a channel, from which a server that stores messages
 * can continue.
 */
const POSITION = 'tunnel-position'
const positionRecord = z.object({ v: z.literal(1), url: z.string(), id: z.string() })
/**
 * Ids of messages in a Redis stream, from which a gosmee server can continue. smee's ids count the messages of a
 * connection and are of no use.
 * @see https://redis.io/docs/latest/develop/data-types/streams/#entry-ids
 */
const STREAM_ID = /^\d{1,20}-\d{1,20}$/

/** State of a channel across its connections. */
interface Channel {
  readonly url: string
  readonly messages: Messages
  /** Id of the last message that was read. Undefined if the server cannot continue from one. */
  position: string | undefined
}

/**
 * Listens on a channel. When a connection ends or falls silent, another is opened, at first immediately, then after a
 * growing delay. Both are read.
 */
export class Tunnel implements AsyncDisposable {
  #options: TunnelOptions & { readonly sendOnce: SendOnce }
  readonly #limits: TunnelLimits
  readonly #roundTrips = new RoundTrips()
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  #status: TunnelStatus
  #channel: Channel | undefined
  /** Last opened connection, with the digests of the messages that it delivers while another is opened. */
  #newest: { readonly connection: Connection; overlap?: Set<string> } | undefined

  constructor({ sendOnce = sendOverNetwork, ...options }: TunnelOptions) {
    this.#options = { ...options, sendOnce }
    this.#limits = { ...LIMITS, ...options.limits }
    this.#status = { source: options.name, state: 'connecting', since: options.clock(), ...UNKNOWN }
    this.#running = this.#run()
  }

  /** Has the source's scheme and secrets replaced. Its channel and connection stay. */
  use(source: Source): void {
    this.#options = { ...this.#options, ...source }
    this.#channel?.messages.use(source)
  }

  /** Resolves once everything that arrived has been handled. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  /** Connects again and again until the tunnel is stopped. Does not reject. */
  async #run(): Promise<void> {
    const { signal } = this.#stop
    const plan = new Reconnection({ limits: this.#limits })
    while (!signal.aborted) {
      const { reason, ...ended } = await this.#connect()
      if (signal.aborted) break
      const { attempt, ms } = plan.after(ended)
      this.#change({ state: 'waiting', why: reason, attempt, retryAt: this.#options.clock() + ms })
      await this.#pause(ms, signal)
    }
    // The newest connection ends after those that it replaced.
    if (this.#newest) await aborted(this.#newest.connection.ended)
    await this.#channel?.messages.handled()
  }

  /**
   * Opens a connection, while the previous one is still read. Resolves once another one is needed, with the reason. Does
   * not reject.
   */
  async #connect(): Promise<Ended & { readonly reason: string }> {
    const { clock } = this.#options
    try {
      const { url } = (this.#channel ??= await this.#openChannel())
      const { lost } = await this.#open(this.#channel)
      const opened = clock()
      this.#change({ ...UNKNOWN, state: 'connected', url })
      await this.#check(url, lost)
      await aborted(lost)
      return { reason: String(lost.reason), openFor: clock() - opened }
    } catch (error) {
      return { reason: toRelayError(error).message, error }
    }
  }

  /** @throws RelayError `provider_failed` if the server does not create a channel; `storage` */
  async #openChannel(): Promise<Channel> {
    const { address, name: source, store, lost, sendOnce } = this.#options
    const { signal } = this.#stop
    const url = this.#status.url ?? (await findChannel(address, { source, store, sendOnce, signal }))
    this.#change({ url })
    const key = recordOf(POSITION, source)
    const saved = positionRecord.safeParse(await store.get(key)).data
    const messages = new Messages({
      ...this.#options,
      payloadUrl: url,
      maxWaiting: this.#limits.waiting,
      roundTrips: this.#roundTrips,
      async onHandled(id) {
        // A position that cannot be stored only causes duplicates.
        if (STREAM_ID.test(id) && lost?.aborted !== true)
          await store.put(key, { v: 1, url, id }).catch(() => {})
      },
      signal,
    })
    return { url, messages, position: saved?.url === url ? saved.id : undefined }
  }

  /** @throws RelayError `provider_failed` */
  async #open(channel: Channel): Promise<Connection> {
    const { log, name, sendOnce, clock, maxBody } = this.#options
    const old = this.#newest
    /** Messages that the old connection delivers after the request of this one, since this one may deliver them too. */
    const seen = new Set<string>()
    if (old) old.overlap = seen
    let isIncomplete = false
    const connection = await openConnection({
      url: channel.url,
      lastEventId: channel.position,
      sendOnce,
      clock,
      limits: this.#limits,
      maxBody,
      async ready() {
        // Messages still in transit on the old connection come first.
        if (old) await aborted(old.connection.ended)
        await channel.messages.room()
      },
      onMessage(text, id) {
        const digest = own.overlap || seen.size > 0 ? hash('sha256', text, 'base64url') : ''
        own.overlap?.add(digest)
        if (seen.delete(digest)) return
        // The server sends in the same order on both, so everything after the first new delivery is new.
        if (channel.messages.isSigned(text)) seen.clear()
        if (STREAM_ID.test(id)) channel.position = id
        channel.messages.enqueue(text, id)
      },
      onGap() {
        // The server may repeat it without end, and one warning is enough.
        if (!isIncomplete) log.warn(`${GAP} ${shownSource(name) ?? 'the code host'}`)
        isIncomplete = true
      },
      signal: this.#stop.signal,
    })
    const own: { connection: Connection; overlap?: Set<string> } = { connection }
    old?.connection.replace()
    this.#newest = own
    return connection
  }

  /** Sends messages to itself until one returns, or the connection is lost. Does not reject. */
  async #check(url: string, lost: AbortSignal): Promise<void> {
    const options = { sendOnce: this.#options.sendOnce, limit: this.#limits.roundTrip, signal: lost }
    for (let failures = 1; ; failures++) {
      const failure = await this.#roundTrips.make(url, options).then(() => undefined, toRelayError)
      if (lost.aborted) return
      const roundTrip = failure?.message ?? 'ok'
      if (roundTrip !== this.#status.roundTrip) this.#change({ roundTrip })
      if (!failure) return
      const own = probeDelay(failures, Math.random, this.#limits.retry)
      await this.#pause(Math.max(own, askedMs(failure.retryAfter)), lost)
    }
  }

  /** Waits, but not beyond a sleep of the machine. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const ignore = onSleep(() => woken.abort(), { clock: this.#options.clock, every: this.#limits.tick })
    await sleep(ms, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {})
    ignore()
  }

  #change(to: Partial<Omit<TunnelStatus, 'since'>>): void {
    const { state = this.#status.state } = to
    const since = state === this.#status.state ? this.#status.since : this.#options.clock()
    this.#status = { ...this.#status, ...to, since }
    this.#options.onStatus(this.#status)
  }
}
