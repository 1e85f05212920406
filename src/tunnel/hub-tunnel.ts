import { hash, randomBytes, randomUUID } from 'node:crypto'
import { z } from 'zod/mini'
import { aborted, deadline, jittered, onSleep, sleep } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import { DEFAULT_TUNNEL, isChannel, NEW_TUNNEL, type Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import { type HubMessage, MAX_ANSWER, MAX_WAIT_MS } from '../hub/protocol.js'
import type { Header } from '../http/headers.js'
import type { TunnelStatus } from '../instance/protocol.js'
import { sendOnce } from '../net/client.js'
import type { Store, StoreReader } from '../store/kv.js'
import { savedServer, tunnelFailure, tunnelRefusal } from './channel.js'
import { ASK_FOR_INVITATION, HubClient, HubRefusal, type HubSession, UnknownChannel } from './hub-client.js'
import { Reconnection, TunnelRefusal } from './reconnect.js'

/** Outcome of a message. Neither promise may be left unhandled. */
export interface Taken {
  /** Resolves once it is in the journal, or refused for good. Rejects with `storage` if it must be given again. */
  readonly stored: Promise<void>
  /** The answer for its sender. Undefined for the hub's own 200. */
  readonly answer: Promise<HubAnswer | undefined>
}

export interface HubAnswer {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

export interface HubTunnelOptions {
  /** Address of the hub. */
  readonly address: string
  /** Invitation, for a channel that is not there yet, or another key. */
  readonly token: Secret | undefined
  /** Store of the channel. Its key is in `secrets`. */
  readonly store: Store
  readonly secrets: Store
  /** Digest of what tells this workstation from others that may have a copy of its data. */
  readonly holder: string
  readonly machine: string
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly log: Log
  readonly clock: Clock
  /** Aborts once another relay of the profile has the tunnel. */
  readonly lost: AbortSignal
  /** Sources of the messages, as they are now. */
  readonly sources: () => readonly HubSource[]
  /** Takes a message. Messages are stored in the order of the calls. */
  readonly take: (message: HubMessage, payloadUrl: string) => Taken
  /** Called with each change, once for each source. Must not throw. */
  readonly onStatus: (status: TunnelStatus) => void
}

export interface HubSource {
  readonly name: string
  /** Milliseconds that its sender waits for an answer. Undefined if 200 will do. */
  readonly answerWithin: number | undefined
}

/** The profile's channel at a hub, by the hub's origin. */
const HUB = 'tunnel-hub:'
/** Key of a channel, by its id. */
const KEY = 'tunnel-hub-key:'
/** A join that the hub has not answered yet, by its origin: repeated with the same key, it gives the same channel. */
const JOINING = 'tunnel-hub-joining:'
const hubRecord = z.object({
  v: z.literal(1),
  channel: z.string(),
  /** Digest of the invitation that was used and is no longer valid. */
  token: z.string(),
})
const joiningRecord = z.object({ v: z.literal(1), token: z.string(), key: z.string() })

/** Wait while another workstation has the channel, which it may leave at any time. Milliseconds. */
const HELD_MS = 3000
/** First wait after a lost test message, and the longest. Milliseconds. */
const CHECK_MS = 1000
const MAX_CHECK_MS = 60_000
/** Delay before a failed write is retried, and interval at which the hub hears of it meanwhile. Milliseconds. */
const STORAGE_MS = 1000
const KEEP_HELD_MS = 10_000
/** Messages that are stored together. More at once could need two transactions, and the first might fail alone. */
const GROUP = 32
/** Time for telling the hub that this workstation ends, in milliseconds. */
const GOODBYE_MS = 2000
/** Until relay's own test message must arrive. Milliseconds. */
const ROUND_TRIP_MS = 10_000
const ROUND_TRIP = 'x-relay-round-trip'

/**
 * True if a tunnel's address is that of a hub: the profile has a channel there, or an invitation is set and no smee channel
 * is saved for that server.
 */
export async function isHubTunnel(
  { tunnel, hubToken }: Pick<Settings, 'tunnel' | 'hubToken'>,
  store: StoreReader | undefined,
): Promise<boolean> {
  if (tunnel === undefined || tunnel === NEW_TUNNEL || isChannel(tunnel)) return false
  const { origin } = new URL(tunnel)
  if (hubRecord.safeParse(await store?.get(HUB + origin)).success) return true
  return hubToken !== undefined && tunnel !== DEFAULT_TUNNEL && (await savedServer(store)) !== origin
}

/**
 * Receives from a channel of a hub, for all sources: takes what waits there in its order, and acknowledges what is in the
 * journal. It connects again and again until it is disposed of.
 */
export class HubTunnel implements AsyncDisposable {
  readonly #options: HubTunnelOptions
  readonly #client: HubClient
  readonly #hub: string
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  readonly #status = new Map<string, TunnelStatus>()
  #channel: string | undefined
  #session: HubSession | undefined
  /** Ends the current session, so that another one begins with the sources as they are now. */
  #renewed = new AbortController()
  /** Last message that is stored, and the stored ones that the hub does not know to be stored yet. */
  #stored: { readonly n: number; readonly id: string } | undefined
  readonly #known = new Set<string>()
  /** Resolves when the message that relay sent to itself is back. */
  #roundTrip = { id: '', returned: new AbortController() }
  readonly #answering = new Set<Promise<void>>()

  constructor(options: HubTunnelOptions) {
    this.#options = options
    this.#hub = new URL(options.address).origin
    this.#client = new HubClient(this.#hub)
    this.update()
    this.#running = this.#run()
  }

  /** Notes that the sources have changed. */
  update(): void {
    const sources = this.#options.sources()
    for (const { name } of sources) if (!this.#status.has(name)) this.#change({}, name)
    const names = new Set(sources.map(({ name }) => name))
    for (const name of this.#status.keys()) if (!names.has(name)) this.#status.delete(name)
    this.#renewed.abort()
  }

  /** Resolves once everything that arrived has been handled. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    await Promise.all(this.#answering)
  }

  /** Does not reject. */
  async #run(): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, this.#options.lost])
    const reconnection = new Reconnection()
    while (!signal.aborted) {
      let opened: number | undefined
      const error = await this.#receive(signal, () => (opened = performance.now())).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (signal.aborted) break
      // The sources have changed.
      if (error === undefined) continue
      const openFor = opened === undefined ? {} : { openFor: performance.now() - opened }
      const { attempt, ms: planned } = reconnection.after({ ...openFor, error })
      const isHeld = error instanceof HubRefusal && error.why === 'held'
      const ms = isHeld ? jittered(HELD_MS, Math.random) : planned
      const why = toRelayError(error).message
      const fix = error instanceof TunnelRefusal ? error.fix : undefined
      this.#change({ state: 'waiting', why, fix, attempt, retryAt: this.#options.clock() + ms })
      await this.#pause(ms, signal)
    }
    await this.#leave().catch(() => {})
  }

  /** Tells the hub what is stored, and that another workstation may have the channel. @throws RelayError */
  async #leave(): Promise<void> {
    const limit = deadline(GOODBYE_MS)
    const stored = this.#stored
    if (stored) await this.#session?.collect({ stored, wait: 0, takes: false, limit })
    await this.#session?.close(limit)
  }

  /** Opens a session and receives until it ends. @throws RelayError with the reason */
  async #receive(stopped: AbortSignal, onOpen: () => void): Promise<void> {
    this.#renewed = new AbortController()
    const renewed = this.#renewed.signal
    const session = await this.#open(stopped)
    this.#session = session
    onOpen()
    this.#change({ ...UNKNOWN, state: 'connected' })
    const limit = AbortSignal.any([stopped, renewed])
    const ended = new AbortController()
    void this.#check(AbortSignal.any([limit, ended.signal]))
    try {
      while (!limit.aborted) {
        const stored = this.#stored
        const messages = await this.#collect(session, { stored, wait: MAX_WAIT_MS, takes: true }, limit)
        if (!messages) return
        if (stored) this.#known.clear()
        await this.#takeAll(messages, session, stopped)
      }
    } finally {
      ended.abort()
    }
  }

  /** Undefined if the session is to be replaced. @throws as `HubSession.collect` */
  async #collect(
    session: HubSession,
    asked: Omit<Parameters<HubSession['collect']>[0], 'limit'>,
    signal: AbortSignal,
  ): Promise<readonly HubMessage[] | undefined> {
    const limit = new AbortController()
    // A connection from before a sleep is dead.
    const ignore = onSleep(() => limit.abort(new RelayError('provider_failed', 'this machine slept')), {
      clock: this.#options.clock,
    })
    try {
      return await session.collect({ ...asked, limit: AbortSignal.any([signal, limit.signal]) })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      ignore()
    }
  }

  /** Stores messages in their order. While storage fails, it tries the same one again, and keeps the channel. */
  async #takeAll(messages: readonly HubMessage[], session: HubSession, stopped: AbortSignal): Promise<void> {
    let reportedAt = performance.now()
    let isRefused = false
    for (let at = 0; at < messages.length;) {
      const group = messages.slice(at, at + GROUP)
      const results = await Promise.allSettled(group.map((message) => this.#take(message, session)))
      for (const [i, message] of group.entries())
        if (results[i]?.status === 'fulfilled') this.#known.add(message.id)
      const failed = results.findIndex(({ status }) => status === 'rejected')
      const done = failed === -1 ? group.length : failed
      const last = group[done - 1]
      if (last) this.#stored = { n: last.n, id: last.id }
      at += done
      if (done > 0) isRefused = false
      if (failed === -1) continue
      if (stopped.aborted) return
      if (!isRefused)
        this.#options.log.warn(`the tunnel waits until storage works again: ${reasonOf(results[failed])}`)
      isRefused = true
      await sleep(STORAGE_MS, { signal: stopped }).catch(() => {})
      if (stopped.aborted) return
      if (performance.now() - reportedAt < KEEP_HELD_MS) continue
      reportedAt = performance.now()
      await session.collect({ stored: this.#stored, wait: 0, takes: false, limit: stopped })
    }
  }

  /** Resolves once the message is stored. @throws RelayError `storage` */
  async #take(message: HubMessage, session: HubSession): Promise<void> {
    // A hub sends a stored message again if the acknowledgement reached it too late.
    if (this.#known.has(message.id)) return
    if (this.#isOwn(message)) return
    const taken = this.#options.take(message, this.#urlOf(message.source))
    const { answerWithin } = message
    if (answerWithin === undefined) taken.answer.catch(() => {})
    else this.#answer(message.id, taken.answer, session, answerWithin)
    await taken.stored
  }

  #answer(id: string, answer: Taken['answer'], session: HubSession, within: number): void {
    const pass = async (): Promise<void> => {
      const found = await answer
      if (!found) return session.answer({ id, ...OK }, deadline(within))
      const { status, headers, body } = found
      if (body.byteLength > MAX_ANSWER / 2) return
      await session.answer(
        { id, status, headers: headers.map(([name, value]) => [name, value]), bytes: body },
        deadline(within),
      )
    }
    // A sender without an answer in time has the hub's 200.
    const passing = pass().catch(() => {})
    this.#answering.add(passing)
    void passing.finally(() => this.#answering.delete(passing))
  }

  /** Opens a session with the profile's channel, after a join if there is none. @throws RelayError */
  async #open(signal: AbortSignal): Promise<HubSession> {
    const { store, secrets, token, holder, machine, maxBody } = this.#options
    const own = hubRecord.safeParse(await store.get(HUB + this.#hub)).data
    const key = own && (await secrets.get<string>(KEY + own.channel))
    const fresh = token && digestOf(token) !== own?.token ? token : undefined
    const open = async (channel: string, by: string): Promise<HubSession> => {
      this.#channel = channel
      this.#change({})
      const answers = Object.fromEntries(
        this.#options
          .sources()
          .flatMap(({ name, answerWithin }) => (answerWithin === undefined ? [] : [[name, answerWithin]])),
      )
      return this.#client.open(by, { channel, holder, machine, maxBody, answers }, signal)
    }
    if (own && key !== undefined) {
      try {
        return await open(own.channel, key)
      } catch (error) {
        if (!fresh || !isLost(error)) throw error
      }
    }
    if (!fresh) throw new NoInvitation(this.#hub)
    return open(...(await this.#join(fresh, signal)))
  }

  /**
   * Joins with a key that is stored before, apart from the one in use, which stays if the hub refuses. Returns channel and
   * key. @throws RelayError
   */
  async #join(token: Secret, signal: AbortSignal): Promise<readonly [channel: string, key: string]> {
    const { store, secrets } = this.#options
    const [joining, digest] = [JOINING + this.#hub, digestOf(token)]
    const begun = joiningRecord.safeParse(await secrets.get(joining)).data
    const key = begun?.token === digest ? begun.key : randomBytes(32).toString('base64url')
    await secrets.put(joining, { v: 1, token: digest, key })
    const channel = await this.#client.join(token.reveal(), key, signal)
    await secrets.put(KEY + channel, key)
    await store.put(HUB + this.#hub, { v: 1, channel, token: digest })
    await secrets.delete(joining)
    return [channel, key]
  }

  #urlOf(source: string): string {
    return `${this.#hub}/${this.#channel ?? ''}/${source}`
  }

  // A round trip

  /** True for a message that relay sent to itself, also before it started. It is empty, so it is no delivery. */
  #isOwn({ headers, body }: HubMessage): boolean {
    const id = headers.find(([name]) => name.toLowerCase() === ROUND_TRIP)?.[1]
    if (id === undefined || body.byteLength > 0) return false
    if (id === this.#roundTrip.id) this.#roundTrip.returned.abort()
    return true
  }

  /** Sends a message to itself until it is back. Does not reject. */
  async #check(signal: AbortSignal): Promise<void> {
    for (let failures = 1; !signal.aborted; failures++) {
      const failure = await this.#makeRoundTrip(signal).then(() => undefined, toRelayError)
      if (signal.aborted) return
      this.#change({ roundTrip: failure?.message ?? 'ok' })
      if (!failure) return
      await this.#pause(jittered(Math.min(CHECK_MS * 2 ** failures, MAX_CHECK_MS), Math.random), signal)
    }
  }

  async #makeRoundTrip(signal: AbortSignal): Promise<void> {
    const [source] = this.#options.sources()
    const { id, returned } = (this.#roundTrip = { id: randomUUID(), returned: new AbortController() })
    const url = this.#urlOf(source?.name ?? '')
    const until = deadline(ROUND_TRIP_MS, signal)
    const headers = { 'user-agent': 'webhook-relay', [ROUND_TRIP]: id }
    const response = await sendOnce(url, { method: 'POST', headers, body: '', signal: until }).catch(
      (error: unknown) => {
        throw tunnelFailure(error)
      },
    )
    response.discard()
    if (response.status !== 200)
      throw tunnelRefusal(`the hub answers ${response.status} to a delivery`, response)
    await Promise.race([aborted(returned.signal), aborted(until)])
    if (!returned.signal.aborted)
      throw new RelayError('provider_failed', `nothing came back within ${ROUND_TRIP_MS / 1000} s`)
  }

  /** Waits, but not beyond a sleep of the machine, nor a change of the sources. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const ignore = onSleep(() => woken.abort(), { clock: this.#options.clock })
    await sleep(ms, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => {})
    ignore()
  }

  #change(to: Partial<Omit<TunnelStatus, 'since' | 'source' | 'url'>>, only?: string): void {
    const now = this.#options.clock()
    const names = only === undefined ? [...this.#status.keys()] : [only]
    const [first] = this.#status.values()
    for (const source of names) {
      const before = this.#status.get(source) ?? {
        ...(first ?? { ...UNKNOWN, state: 'connecting', since: now }),
        source,
      }
      const next = { ...before, ...to, url: this.#channel === undefined ? null : this.#urlOf(source) }
      this.#status.set(source, { ...next, since: next.state === before.state ? before.since : now })
    }
    for (const source of names) {
      const status = this.#status.get(source)
      if (status) this.#options.onStatus(status)
    }
  }
}

const UNKNOWN = { url: null, why: null, fix: undefined, attempt: 0, retryAt: null, roundTrip: null } as const
const OK = {
  status: 200,
  headers: [['content-type', 'application/json'] as [string, string]],
  bytes: Buffer.from('{"ok":true}'),
}

/** True if an invitation that the user has set since then gives a channel: this one is closed to this workstation. */
function isLost(error: unknown): boolean {
  if (error instanceof UnknownChannel) return true
  return error instanceof HubRefusal && (error.why === 'withdrawn' || error.why === 'held')
}

function digestOf(token: Secret): string {
  return hash('sha256', token.reveal(), 'base64url')
}

/** Why a message could not be stored, in the words of the storage. */
function reasonOf(result: PromiseSettledResult<void> | undefined): string {
  const { message, cause } = toRelayError(result?.status === 'rejected' ? result.reason : undefined)
  return cause instanceof RelayError ? cause.message : message
}

const FORBIDDEN = 403

/** There is no channel, and no invitation to make one. */
class NoInvitation extends TunnelRefusal {
  constructor(hub: string) {
    super(
      `there is no channel at ${hub} yet. Set RELAY_HUB_TOKEN to an invitation, which its operator makes with relay hub invite`,
      FORBIDDEN,
      { fix: ASK_FOR_INVITATION },
    )
  }
}
