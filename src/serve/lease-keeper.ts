import { aborted, sleep } from '../base/abort.js'
import { jittered } from '../base/backoff.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { BEAT_MS, type LeaseRow, type Leases, SILENCE_MS } from '../store/leases.js'
import { type Duties, type Duty, QUEUE_DUTY } from './duties.js'
import { LeasedDuty } from './leased-duty.js'
import { startStopwatch, type Stopwatch } from './stopwatch.js'

/** For the difference of two clocks' rates, and for what happens between the last look at the clock and the sending. */
const MARGIN_MS = 250
/** The shortest and the longest time between two beats that fail, in milliseconds. */
const MIN_RETRY_MS = 250
const MAX_RETRY_MS = 2000
/** How long after a lease has become free a relay that has its share leaves it to others, in milliseconds. */
const COURTESY_MS = 2 * BEAT_MS

export interface LeaseKeeperParts {
  readonly leases: Leases
  /** The lease that this relay holds besides its duties. */
  readonly ownName: string
  readonly log: Log
  /** Called with all leases before anything is claimed. Nothing is, if it rejects. */
  readonly onBeat: (rows: readonly LeaseRow[]) => Promise<void>
  /** Called before with the name of each relay that is silent. */
  readonly onSilent: (holder: string) => Promise<void>
}

/**
 * Renews this relay's leases once a second, does the duties whose leases it has, and takes over those of relays that are silent. While
 * the database is away, nothing is interrupted, and nothing new is sent.
 */
export class LeaseKeeper implements Duties, AsyncDisposable {
  readonly #parts: LeaseKeeperParts
  readonly #duties = new Map<string, LeasedDuty>()
  /** The duties that are being given back. Their leases are held until they have ended. */
  readonly #leaving = new Set<string>()
  readonly #stop = new AbortController()
  /** Since the last beat that was answered was sent. */
  #sinceBeat: Stopwatch = () => Infinity
  #renewal = new AbortController()
  #wake = new AbortController()
  #claiming: Promise<void> | undefined
  /** The newest leases, until they are looked at for what to claim. */
  #unclaimed: readonly LeaseRow[] | undefined
  #running: Promise<void> | undefined
  #isAway = false

  constructor(parts: LeaseKeeperParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running = this.#beatRegularly()
  }

  /** Looks at the leases now. */
  wake(): void {
    this.#wake.abort()
  }

  async run(duty: Duty): Promise<AsyncDisposable> {
    const { leases, log } = this.#parts
    const leased = new LeasedDuty({
      duty,
      fence: (epoch) => leases.fence(duty.name, epoch),
      isCurrent,
      renewed: async (signal) => {
        await Promise.race([aborted(this.#renewal.signal), aborted(signal)])
      },
      log,
    })
    this.#duties.set(duty.name, leased)
    this.wake()
    return {
      [Symbol.asyncDispose]: async () => {
        if (this.#duties.get(duty.name) === leased) this.#duties.delete(duty.name)
        await this.#leave(duty.name, leased)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.wake()
    await this.#running
    await this.#claiming
    await Promise.all([...this.#duties.values()].map((duty) => duty.end()))
    this.#duties.clear()
    const rows = await this.#parts.leases.beat().catch(() => [])
    await this.#releaseUnwanted(rows)
  }

  async #beatRegularly(): Promise<void> {
    const { signal } = this.#stop
    for (let failures = 0; !signal.aborted;) {
      let wait: number
      this.#wake = new AbortController()
      try {
        wait = await this.#beat()
        failures = 0
      } catch (error) {
        this.#away(error)
        wait = jittered(Math.min(MIN_RETRY_MS * 2 ** failures++, MAX_RETRY_MS), Math.random)
      }
      await sleep(wait, { signal: this.#wake.signal }).catch(() => {})
    }
  }

  /** Resolves to the milliseconds until the next one. */
  async #beat(): Promise<number> {
    const { leases } = this.#parts
    const since = startStopwatch()
    const before = new Map([...this.#duties].map(([name, { epoch }]) => [name, epoch]))
    const rows = await leases.beat()
    this.#sinceBeat = since
    this.#back()
    this.#renewal.abort()
    this.#renewal = new AbortController()
    this.#reconcile(rows, before, since)
    this.#unclaimed = rows
    this.#claiming ??= this.#claimAll()
      .catch((error: unknown) => this.#parts.log.debug(toRelayError(error).message))
      .finally(() => (this.#claiming = undefined))
    // Not a whole interval late where a relay is about to be silent for too long.
    const due = rows.map(({ holder, silent }) => (holder === null ? Infinity : SILENCE_MS - silent))
    return Math.min(BEAT_MS, ...due.filter((ms) => ms > 0).map((ms) => ms + 1))
  }

  /**
   * What is done is what this relay holds. `before` are the epochs when the database was asked: of what was begun or lost since then,
   * the rows may be older.
   */
  #reconcile(
    rows: readonly LeaseRow[],
    before: ReadonlyMap<string, number | undefined>,
    since: Stopwatch,
  ): void {
    const held = new Map(rows.filter((row) => row.held).map(({ name, epoch }) => [name, epoch]))
    for (const [name, duty] of this.#duties) {
      if (duty.epoch === undefined) continue
      if (duty.epoch === held.get(name)) duty.renew(since)
      else if (duty.epoch === before.get(name)) duty.lose()
    }
    // Also what it got without knowing, because the answer was lost.
    for (const [name, epoch] of held) {
      const duty = this.#duties.get(name)
      if (duty?.isOff && !this.#leaving.has(name) && before.get(name) !== epoch) duty.begin(epoch, since)
    }
    for (const { name, holder } of rows)
      if (holder !== null && !held.has(name)) this.#duties.get(name)?.passed()
  }

  /** What it got although it does not want it any more. */
  async #releaseUnwanted(rows: readonly LeaseRow[]): Promise<void> {
    const names = rows.filter(({ held }) => held).map(({ name }) => name)
    const wanted = new Set([this.#parts.ownName, ...this.#duties.keys(), ...this.#leaving])
    const unwanted = names.filter((name) => !wanted.has(name))
    if (unwanted.length > 0) await this.#release(unwanted)
  }

  /** Also what became free meanwhile. */
  async #claimAll(): Promise<void> {
    for (let rows = this.#unclaimed; rows; rows = this.#unclaimed) {
      this.#unclaimed = undefined
      await this.#claim(rows)
    }
  }

  async #claim(rows: readonly LeaseRow[]): Promise<void> {
    const { leases, onBeat, onSilent, log } = this.#parts
    for (const holder of silentHolders(rows, leases.holder)) await onSilent(holder)
    await onBeat(rows)
    await this.#releaseUnwanted(rows)
    const silent = new Set(rows.filter(({ holder }) => holder !== null).map(({ name }) => name))
    const since = startStopwatch()
    for (const [name, epoch] of await leases.claim(this.#wanted(rows))) {
      const duty = this.#duties.get(name)
      if (!duty?.isOff || this.#stop.signal.aborted) continue
      if (silent.has(name)) log.info(`Taken over from a relay that is silent: ${duty.what}`)
      duty.begin(epoch, since)
    }
    await this.#giveBack(rows)
  }

  /** What is free, or held by a relay that is silent; of the free queues only those that it is this relay's turn to take. */
  #wanted(rows: readonly LeaseRow[]): readonly string[] {
    const known = new Map(rows.map((row) => [row.name, row]))
    const off = [...this.#duties].filter(([, duty]) => duty.isOff).map(([name]) => name)
    let left = shareOf(rows, this.#duties.keys()) - this.#queues().length
    return off.filter((name) => {
      const row = known.get(name)
      if (row?.held) return false
      if (row && row.holder !== null) return row.silent > SILENCE_MS
      if (!name.startsWith(QUEUE_DUTY) || left > 0) return left-- > -Infinity
      return row !== undefined && row.silent > COURTESY_MS
    })
  }

  /** One that is idle, if this relay has more queues than its share. */
  async #giveBack(rows: readonly LeaseRow[]): Promise<void> {
    const queues = this.#queues()
    if (queues.length <= shareOf(rows, this.#duties.keys())) return
    const [name, duty] = queues.find(([, { isIdle }]) => isIdle) ?? []
    if (name === undefined || !duty) return
    await this.#leave(name, duty)
  }

  async #leave(name: string, duty: LeasedDuty): Promise<void> {
    this.#leaving.add(name)
    await duty.end()
    await this.#release([name])
    this.#leaving.delete(name)
  }

  #queues(): readonly (readonly [string, LeasedDuty])[] {
    return [...this.#duties].filter(([name, duty]) => name.startsWith(QUEUE_DUTY) && !duty.isOff)
  }

  /** If that fails, they are free when this relay has been silent for long enough. */
  async #release(names: readonly string[]): Promise<void> {
    await this.#parts.leases.release(names).catch(() => {})
  }

  #away(error: unknown): void {
    if (this.#isAway || isCurrent(this.#sinceBeat) || this.#stop.signal.aborted) return
    this.#isAway = true
    this.#parts.log.warn(`Forwarding pauses: ${toRelayError(error).message}`)
  }

  #back(): void {
    if (this.#isAway) this.#parts.log.info('Forwarding continues: the database answers again')
    this.#isAway = false
  }
}

/** Whether no other relay can have a lease that this one had when `since` was started. */
function isCurrent(since: Stopwatch): boolean {
  return since() < SILENCE_MS - MARGIN_MS
}

/** The relays other than this one that have not renewed their leases for too long. */
export function silentHolders(rows: readonly LeaseRow[], own: string): ReadonlySet<string> {
  return new Set(
    rows.flatMap(({ holder, silent }) =>
      holder !== null && holder !== own && silent > SILENCE_MS ? [holder] : [],
    ),
  )
}

/** How many queues a relay takes if all relays take the same number. */
function shareOf(rows: readonly LeaseRow[], wanted: Iterable<string>): number {
  const live = rows.filter(({ holder, silent }) => holder !== null && silent <= SILENCE_MS)
  const relays = new Set(live.map(({ holder }) => holder)).size
  const queues = [...wanted].filter((name) => name.startsWith(QUEUE_DUTY)).length
  return Math.ceil(queues / Math.max(1, relays))
}
