import { sleep, type Cancellable } from '../base/wait.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Sql } from '../store/sql.js'
import { JournalQueries } from './read.js'
import { type NamedTargetId, nameTargets } from './targets.js'
import type { Attempt, Delivery, Forward, ForwardStatus, OnDuplicate, Plan, Receipt } from './types.js'
import * as writing from './write.js'

/** A change of the journal, for observers. */
export type JournalChange =
  /** The entry is new, or its duplicates, forwards or attempts have changed. */
  | { readonly type: 'changed'; readonly n: number }
  /** Retention has removed entries; `oldest` is the first that is left. */
  | { readonly type: 'removed'; readonly oldest: number }

/** Events for metrics. No method may throw. */
export interface JournalObserver {
  stored(delivery: Delivery, result: 'stored' | 'duplicate' | 'unavailable', seconds: number): void
  recorded(attempt: Attempt, seconds: number): void
  /** Called when a forward has ended. */
  ended(target: string, status: Forward['status']): void
}

export interface JournalOptions {
  /** Default: nothing is counted. */
  readonly observer?: JournalObserver | undefined
  /** Called after each durable change by this process. Must not throw. */
  readonly onChange?: ((change: JournalChange) => void) | undefined
  /** The wall clock. */
  readonly clock?: Clock | undefined
}

export interface Retention extends Cancellable {
  /** Age up to which entries are kept, in milliseconds since they were received. */
  readonly keep: number
  /** Largest size of the database, in bytes. */
  readonly keepMax: number
  /** True: the newest entry, which stays, is emptied once it would be removed. Default: false. */
  readonly emptiesNewest?: boolean | undefined
}

/**
 * Pause between steps in milliseconds, which leaves most of the time to intake. With 2 ms, a step usually removed only
 * the few entries that had arrived since the last one (a fifth more processor time).
 */
const PAUSE_MS = 20
/** Size of a delivery beyond its body in bytes: row, headers and index entries. */
const OVERHEAD = 4096

/**
 * Durable, ordered record of deliveries and of their forwarding. Every method rejects with RelayError `storage` when
 * the database fails.
 */
export class Journal extends JournalQueries {
  readonly #sql: Sql
  readonly #clock: Clock
  readonly #onChange: (change: JournalChange) => void
  readonly #observer: JournalObserver | undefined
  readonly #appender: Appender
  readonly #duplicates: Duplicates

  constructor(sql: Sql, { onChange = () => {}, clock = systemClock, observer }: JournalOptions = {}) {
    super(sql, clock)
    this.#sql = sql
    this.#clock = clock
    this.#observer = observer
    this.#onChange = onChange
    this.#appender = new Appender(sql)
    this.#duplicates = new Duplicates(async (counts) => {
      await sql.write(() => writing.addDuplicates(counts), { announces: [...counts.keys()] })
      for (const n of counts.keys()) this.#changed(n)
    })
  }

  /** Records a delivery and its forwards in one transaction, durably. A duplicate is counted on its entry. */
  async append(delivery: Delivery, plan: Plan): Promise<Receipt> {
    const began = performance.now()
    const receipt = await this.#appender.append({ delivery, plan }).catch((error: unknown) => {
      this.#observer?.stored(delivery, 'unavailable', secondsSince(began))
      throw error
    })
    this.#observer?.stored(delivery, receipt.duplicate ? 'duplicate' : 'stored', secondsSince(began))
    if (receipt.duplicate) this.#duplicates.add(receipt.n)
    if (!receipt.duplicate || receipt.targets.length > 0) this.#changed(receipt.n)
    return receipt
  }

  /**
   * Queues the forwards of an entry to these targets again and restarts their count of attempts. The rule decides about
   * those that succeeded, failed or never existed; those that wait are always queued. Resolves to the targets that then
   * wait, or undefined if there is no such entry.
   */
  async requeue(
    n: number,
    targets: readonly string[],
    rule: OnDuplicate,
  ): Promise<readonly string[] | undefined> {
    const work = () => writing.again(n, targets, rule, this.#clock())
    const waiting = await this.#sql.write(work, { announces: [n] })
    this.#changed(n)
    return waiting
  }

  /** Ends the forwards of an entry that wait: they have failed. Resolves to their targets. */
  async skip(n: number): Promise<readonly string[]> {
    const targets = await this.#sql.write(() => writing.endWaiting(n), { announces: [n] })
    for (const target of targets) this.#observer?.ended(target, 'failed')
    if (targets.length > 0) this.#changed(n)
    return targets
  }

  /**
   * Marks what waits for a target, up to an entry, as forwarded: the target has said that it has it. Resolves to the
   * bytes that they take, as `storedBytes` counts them; 0 if it had said so before.
   */
  async acknowledge(target: string, last: writing.Acknowledged): Promise<number> {
    const taken = await this.#sql.write(() => writing.acknowledge(target, last), { announces: [] })
    for (const _ of taken) this.#observer?.ended(target, 'succeeded')
    return taken.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Removes all entries of a source, those that wait, too. The newest of all sources is emptied instead. */
  async removeOf(source: string): Promise<void> {
    while ((await this.#sql.write(() => writing.removeOf(source), { announces: [] })) > 0)
      await sleep(PAUSE_MS)
  }

  /** Makes what is to be tried again at these targets due now. */
  async hasten(targets: readonly string[]): Promise<void> {
    await this.#sql.write(() => writing.hasten(targets), { announces: [] })
  }

  /**
   * Stores the names of targets. A target that has the name of another one takes over what that had: what waits, what
   * has ended, and the attempts. Resolves to the targets that did.
   */
  async nameTargets(targets: readonly NamedTargetId[]): Promise<readonly string[]> {
    return this.#sql.write(() => nameTargets(targets), { announces: [] })
  }

  /** Writes the counts of duplicates that are still in memory. Does not reject. */
  flush(): Promise<void> {
    return this.#duplicates.flush()
  }

  /** Rejects if a delivery could not be stored now. Writes as `append` does, but changes nothing. */
  check(): Promise<void> {
    return this.#sql.write(() => writing.check(), { grows: OVERHEAD })
  }

  /**
   * Records an attempt and the forward's new status in one transaction, or nothing if the entry is gone. It may be
   * repeated. An attempt whose connection failed like the target's last one is counted on that one; beyond 4,096
   * attempts of an entry, the last one is replaced. `isLazy`: it may wait some milliseconds for other writes. Resolves to
   * the status of the forward, which may have ended before.
   */
  async record(
    n: number,
    attempt: Attempt,
    forward: Forward,
    { isLazy = false }: { readonly isLazy?: boolean } = {},
  ): Promise<ForwardStatus> {
    const began = performance.now()
    const status = await this.#sql.write(() => writing.record(n, attempt, forward), {
      announces: [n],
      ...(isLazy && { isLazy }),
    })
    this.#observer?.recorded(attempt, secondsSince(began))
    if (forward.status !== 'waiting') this.#observer?.ended(attempt.target, forward.status)
    this.#changed(n)
    return status
  }

  /**
   * Fails forwards that have waited since before an instant, for one target or for all without a route. Resolves to
   * their number.
   */
  async expire(before: number, which: writing.Expiring): Promise<number> {
    for (let expired = 0; ;) {
      const step = await this.#sql.write(() => writing.expire(before, which), { announces: [] })
      if (step.length === 0) return expired
      expired += step.length
      for (const { n, target } of step) {
        this.#observer?.ended(target, 'failed')
        this.#changed(n)
      }
    }
  }

  /**
   * Removes the oldest entries while they are older than `keep` or the database is larger than `keepMax`, but never one
   * that waits, nor the newest, which can be emptied. Ends after the current step when `signal` aborts. Resolves to the number removed.
   */
  async sweep({ keep, keepMax, emptiesNewest = false, signal }: Retention): Promise<number> {
    const isStopped = (): boolean => signal?.aborted === true
    let removed = 0
    const remove = async (end: number, excess: () => Promise<number>): Promise<void> => {
      for (let after = 0; !isStopped();) {
        const bytes = await excess()
        if (bytes <= 0) return
        const from = after
        const step = await this.#sql.write(() => writing.remove(from, end, bytes), { announces: [] })
        if (step.last === 0) return
        removed += step.removed
        after = step.last
        await sleep(PAUSE_MS, { signal }).catch(() => {})
      }
    }
    // Read first, because an entry that arrives after the next query is not old.
    const newest = await this.newest()
    const young = await this.firstSince(this.#clock() - keep)
    await remove(young ?? newest, async () => Infinity)
    await remove(Number.MAX_SAFE_INTEGER, async () => (await this.#sql.usedBytes()) - keepMax)
    const before = this.#clock() - keep
    if (emptiesNewest && !isStopped())
      await this.#sql.write(() => writing.emptyNewest(before), { announces: [] })
    const [oldest] = removed > 0 ? await this.after(0, 1) : []
    if (oldest) this.#onChange({ type: 'removed', oldest: oldest.n })
    return removed
  }

  #changed(n: number): void {
    this.#onChange({ type: 'changed', n })
  }
}

function secondsSince(began: number): number {
  return (performance.now() - began) / 1000
}

/** Most deliveries in one transaction: enough for a burst. */
const MAX_APPENDED = 64

interface Pending extends writing.Appended {
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: unknown) => void
}

/** Groups the deliveries that arrive before a transaction begins, so that a burst takes few statements. */
class Appender {
  readonly #sql: Sql
  #pending: Pending[] = []
  /** Bytes for which no room was requested yet. */
  #grown = 0
  #isScheduled = false

  constructor(sql: Sql) {
    this.#sql = sql
  }

  append({ delivery, plan }: writing.Appended): Promise<Receipt> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ delivery, plan, resolve, reject })
      this.#grown += delivery.body.byteLength + OVERHEAD
      if (!this.#isScheduled) void this.#write()
    })
  }

  /** Writes the pending deliveries. Does not reject. */
  async #write(): Promise<void> {
    this.#isScheduled = true
    // Deliveries that join later are counted with the next transaction.
    const grows = this.#grown
    this.#grown = 0
    let batch: Pending[] | undefined
    try {
      const work = () => writing.append((batch ??= this.#take()))
      const receipts = await this.#sql.write(work, { grows, announces: [] })
      for (const [i, receipt] of receipts.entries()) batch?.[i]?.resolve(receipt)
    } catch (error) {
      if (!batch) {
        // The transaction failed before it began, so the deliveries that joined it would fail too, after another such
        // wait.
        batch = this.#pending.splice(0)
        this.#isScheduled = false
      }
      for (const { reject } of batch) reject(error)
    }
  }

  #take(): Pending[] {
    const batch = this.#pending.splice(0, MAX_APPENDED)
    this.#isScheduled = false
    if (this.#pending.length > 0) void this.#write()
    return batch
  }
}

/** Interval between writes in milliseconds, short enough for a person who watches the number. */
const PERIOD_MS = 1000

/**
 * Counts duplicates in memory. The first is written at once, those that follow together once a second, so that a flood
 * of duplicates does not cost a commit each. A crash loses only the counts of a second.
 */
class Duplicates {
  readonly #write: (counts: ReadonlyMap<number, number>) => Promise<void>
  #counts = new Map<number, number>()
  #timer: NodeJS.Timeout | undefined
  #written: Promise<unknown> = Promise.resolve()

  constructor(write: (counts: ReadonlyMap<number, number>) => Promise<void>) {
    this.#write = write
  }

  add(n: number): void {
    this.#counts.set(n, (this.#counts.get(n) ?? 0) + 1)
    if (!this.#timer) this.#begin()
  }

  /** Writes the counts. Does not reject: a count that cannot be written is lost. */
  async flush(): Promise<void> {
    const counts = this.#counts
    this.#counts = new Map()
    if (counts.size > 0) this.#written = Promise.allSettled([this.#written, this.#write(counts)])
    await this.#written
  }

  #begin(): void {
    void this.flush()
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#counts.size > 0) this.#begin()
    }, PERIOD_MS).unref()
  }
}
