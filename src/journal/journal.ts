import { sleep, type Cancellable } from '../base/wait.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Sql } from '../store/sql.js'
import { DISORDER_MS, type Filter } from './filter.js'
import * as reading from './read.js'
import type { WalkStep } from './read.js'
import type {
  Attempt,
  Delivery,
  Due,
  Entry,
  Forward,
  ForwardCounts,
  Forwards,
  LastAttempt,
  Minute,
  Plan,
  Receipt,
  Summary,
  WaitingQueue,
} from './types.js'
import * as writing from './write.js'

export type { WalkStep } from './read.js'

/** A change of the journal, for observers. */
export type JournalChange =
  /** The entry is new, or its duplicates, forwards or attempts have changed. */
  | { readonly type: 'changed'; readonly n: number }
  /** Retention has removed entries: `oldest` is the first that is left. */
  | { readonly type: 'removed'; readonly oldest: number }

/** What metrics count. None of it may throw. */
export interface JournalObserver {
  stored(delivery: Delivery, result: 'stored' | 'duplicate' | 'unavailable', seconds: number): void
  recorded(attempt: Attempt, seconds: number): void
  /** A forward has ended. */
  ended(target: string, status: Forward['status']): void
}

export interface JournalOptions {
  readonly observer?: (() => JournalObserver | undefined) | undefined
  /** Called after each change that this process has made durable. Must not throw. */
  readonly onChange?: ((change: JournalChange) => void) | undefined
  /** The wall clock. */
  readonly clock?: Clock | undefined
}

export interface Retention extends Cancellable {
  /** How long entries are kept, in milliseconds since they were received. */
  readonly keep: number
  /** What the database may take in storage, in bytes. */
  readonly keepMax: number
}

/**
 * Between steps, in milliseconds, so that most of the time is left to intake. With 2 ms, a step usually removed only the few entries that
 * had arrived since the last one (a fifth more processor time).
 */
const PAUSE_MS = 20
/** What a delivery takes beyond its body: its row, its headers, the entries of indexes. Bytes. */
const OVERHEAD = 4096

/**
 * The durable, ordered record of deliveries and of their forwarding. Any process may read it, also while others write. An entry that is
 * removed is left out. Every method rejects with RelayError `storage` when the database fails.
 */
export class Journal {
  readonly #sql: Sql
  readonly #clock: Clock
  readonly #onChange: (change: JournalChange) => void
  readonly #appender: Appender
  readonly #duplicates: Duplicates
  readonly #observer: () => JournalObserver | undefined

  constructor(sql: Sql, options: JournalOptions = {}) {
    const { onChange = () => {}, clock = systemClock, observer = () => undefined } = options
    this.#observer = observer
    this.#sql = sql
    this.#clock = clock
    this.#onChange = onChange
    this.#appender = new Appender(sql)
    this.#duplicates = new Duplicates(async (counts) => {
      await sql.write(() => writing.addDuplicates(counts), { announces: [...counts.keys()] })
      for (const n of counts.keys()) this.#changed(n)
    })
  }

  /** Records a delivery and its forwards in one transaction; resolved means durable. What it already has is counted on its entry. */
  async append(delivery: Delivery, plan: Plan): Promise<Receipt> {
    const began = performance.now()
    const receipt = await this.#appender.append({ delivery, plan }).catch((error: unknown) => {
      this.#observer()?.stored(delivery, 'unavailable', secondsSince(began))
      throw error
    })
    this.#observer()?.stored(delivery, receipt.duplicate ? 'duplicate' : 'stored', secondsSince(began))
    if (receipt.duplicate) this.#duplicates.add(receipt.n)
    if (!receipt.duplicate || receipt.targets.length > 0) this.#changed(receipt.n)
    return receipt
  }

  /** Lets the forwards of an entry to these targets wait again, also where they succeeded or never were. False when there is no such entry. */
  async again(n: number, targets: readonly string[]): Promise<boolean> {
    const found = await this.#sql.write(() => writing.again(n, targets, this.#clock()), { announces: [n] })
    this.#changed(n)
    return found
  }

  /** Writes the counts of duplicates that are not written yet. Does not reject. */
  flush(): Promise<void> {
    return this.#duplicates.flush()
  }

  /** Rejects if a delivery could not be stored now: it writes as `append` does, but changes nothing. */
  check(): Promise<void> {
    return this.#sql.write(() => writing.check(), { grows: OVERHEAD })
  }

  /** The oldest forwards that wait for a target, at most `limit`, without those of the entries `except`. */
  next(target: string, limit: number, except: Iterable<number>): Promise<readonly Due[]> {
    return reading.next(this.#sql, target, limit, except)
  }

  /**
   * Records an attempt and the forward's new status in one transaction; nothing when the entry is gone. It may be repeated. An attempt whose
   * connection failed like the target's last one is counted on that one; beyond 4,096 of an entry, the last one is replaced.
   */
  async record(n: number, attempt: Attempt, forward: Forward): Promise<void> {
    const began = performance.now()
    await this.#sql.write(() => writing.record(n, attempt, forward), { announces: [n] })
    this.#observer()?.recorded(attempt, secondsSince(began))
    if (forward.status !== 'waiting') this.#observer()?.ended(attempt.target, forward.status)
    this.#changed(n)
  }

  /** Fails what waits for a target, or for any but those that have a route, since before an instant. Resolves to how many. */
  async expire(before: number, which: writing.Expiring): Promise<number> {
    const expireStep = () => this.#sql.write(() => writing.expire(before, which), { announces: [] })
    let expired = 0
    for (
      let step: Awaited<ReturnType<typeof expireStep>> | undefined;
      step === undefined || step.length > 0;
    ) {
      step = await expireStep()
      expired += step.length
      for (const { n, target } of step) {
        this.#observer()?.ended(target, 'failed')
        this.#changed(n)
      }
    }
    return expired
  }

  read(n: number): Promise<Entry | undefined> {
    return reading.read(this.#sql, n)
  }

  /** The number of the newest entry; 0 when there is none. */
  newest(): Promise<number> {
    return reading.newest(this.#sql)
  }

  /** The number of entries. */
  count(): Promise<number> {
    return reading.count(this.#sql)
  }

  /** Those of the delivery ids that the journal has, under any hook. */
  known(deliveryIds: readonly string[]): Promise<ReadonlySet<string>> {
    return reading.known(this.#sql, deliveryIds)
  }

  /** The instant from which on nothing was removed; -Infinity when nothing ever was. */
  keptSince(): Promise<number> {
    return reading.keptSince(this.#sql, this.#clock())
  }

  /** The entries that pass the filter, newest first. Reads only as far as it is iterated. */
  async *select(filter: Filter = {}): AsyncGenerator<Summary> {
    for await (const { found } of this.walk(filter)) yield* found
  }

  /** {@link select} in short steps, for a caller that may stop before something is found. */
  walk(filter: Filter): AsyncIterable<WalkStep> {
    return reading.walk(this.#sql, filter, this.#clock)
  }

  /** Which of these entries have the text in their body, in any case of the letters a to z. */
  async withText(numbers: readonly number[], text: string): Promise<ReadonlySet<number>> {
    return new Set(await reading.withText(this.#sql, numbers, text))
  }

  /** At most `limit` entries with a number above `n`, oldest first. */
  after(n: number, limit: number): Promise<readonly Summary[]> {
    return reading.after(this.#sql, n, limit)
  }

  /** The entries with these numbers that exist, in the order of the numbers given. */
  summaries(numbers: readonly number[]): Promise<readonly Summary[]> {
    return reading.summaries(this.#sql, numbers)
  }

  forwards(n: number): Promise<Forwards> {
    return reading.forwards(this.#sql, n)
  }

  /** How many forwards to each target have which status. */
  counts(): Promise<ReadonlyMap<string, ForwardCounts>> {
    return reading.counts(this.#sql)
  }

  /** What waits for each target, by its id; nothing for a target for which nothing does. */
  queues(): Promise<ReadonlyMap<string, WaitingQueue>> {
    return reading.queues(this.#sql)
  }

  /** The minutes of this span, in milliseconds, in which deliveries were received, with how many; `failed`: of those, how many have. */
  minutes(from: number, until: number): Promise<readonly Minute[]> {
    return reading.minutes(this.#sql, from, until)
  }

  /** In the order made. */
  attempts(n: number): Promise<readonly Attempt[]> {
    return reading.attempts(this.#sql, n)
  }

  /** The last attempt of each of these entries at each of its targets. */
  lastAttempts(numbers: readonly number[]): Promise<readonly LastAttempt[]> {
    return reading.lastAttempts(this.#sql, numbers)
  }

  /**
   * Removes the oldest entries while they are older than `keep` or the database is larger than `keepMax`; never one that waits, nor the
   * newest. Ends after the step under way when `signal` aborts. Resolves to how many.
   */
  async sweep({ keep, keepMax, signal }: Retention): Promise<number> {
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
    if (isStopped()) return 0
    await remove(await this.#firstYoung(keep), () => Promise.resolve(Infinity))
    await remove(Number.MAX_SAFE_INTEGER, async () => (await this.#sql.usedBytes()) - keepMax)
    const [oldest] = removed > 0 ? await this.after(0, 1) : []
    if (oldest) this.#onChange({ type: 'removed', oldest: oldest.n })
    return removed
  }

  /** The number of the first entry that is young. One from the future, received when the clock was wrong, says nothing about those around it. */
  async #firstYoung(keep: number): Promise<number> {
    // First, because an entry that comes after the next query is not old.
    const newest = await this.newest()
    const now = this.#clock()
    // In the order of the numbers: usually the first one is young. The sign keeps SQLite from using the index on the time.
    const query = 'SELECT n FROM delivery WHERE +received_at BETWEEN ? AND ? ORDER BY n LIMIT 1'
    const [row] = await this.#sql.query<{ n: number }>(query, [now - keep, now + DISORDER_MS])
    return row?.n ?? newest
  }

  #changed(n: number): void {
    this.#onChange({ type: 'changed', n })
  }
}

function secondsSince(began: number): number {
  return (performance.now() - began) / 1000
}

/** Deliveries in one transaction, and the bytes of their bodies: enough for a burst, and not much memory. */
const MAX_APPENDED = 64
const MAX_APPENDED_BYTES = 8_388_608

interface Pending extends writing.Appended {
  readonly resolve: (receipt: Receipt) => void
  readonly reject: (error: unknown) => void
}

/** Records in one transaction what arrives while the last one is committed, so that a burst takes few statements. */
class Appender {
  readonly #sql: Sql
  #pending: Pending[] = []
  /** Bytes that were not counted yet, for the room on the disk. */
  #uncounted = 0
  #isScheduled = false

  constructor(sql: Sql) {
    this.#sql = sql
  }

  append(appended: writing.Appended): Promise<Receipt> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...appended, resolve, reject })
      this.#uncounted += appended.delivery.body.byteLength + OVERHEAD
      if (!this.#isScheduled) void this.#write()
    })
  }

  /** Does not reject. */
  async #write(): Promise<void> {
    this.#isScheduled = true
    let batch: Pending[] | undefined
    // Taken when the transaction begins, once: it may be run again.
    const work = () => writing.append((batch ??= this.#take()))
    // What joins this batch later is counted with the next.
    const grows = this.#uncounted
    this.#uncounted = 0
    try {
      const receipts = await this.#sql.write(work, { grows, announces: [] })
      for (const [i, receipt] of receipts.entries()) batch?.[i]?.resolve(receipt)
    } catch (error) {
      for (const { reject } of batch ?? this.#take()) reject(error)
    }
  }

  #take(): Pending[] {
    let bytes = 0
    const isOver = ({ delivery }: Pending): boolean =>
      (bytes += delivery.body.byteLength) > MAX_APPENDED_BYTES
    const end = this.#pending.slice(0, MAX_APPENDED).findIndex((each, i) => isOver(each) && i > 0)
    const batch = this.#pending.splice(0, end === -1 ? MAX_APPENDED : end)
    this.#isScheduled = false
    if (this.#pending.length > 0) void this.#write()
    return batch
  }
}

/** One second between two writes: a person who watches the number sees it change soon enough. */
const PERIOD_MS = 1000
/** Entries whose counts wait. A burst of duplicates of more entries is written earlier, in one short transaction. */
const MAX_ENTRIES = 256

/**
 * Counts duplicates in memory. The first is written at once, those that follow together, once a second, so that a flood of duplicates
 * costs no commit each. A crash loses the counts of a second, and nothing else.
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
    if (this.#timer && this.#counts.size < MAX_ENTRIES) return
    void this.flush()
    if (!this.#timer) this.#startPeriod()
  }

  /** Does not reject: a count that cannot be written is lost. */
  async flush(): Promise<void> {
    const counts = this.#counts
    this.#counts = new Map()
    if (counts.size > 0) this.#written = Promise.allSettled([this.#written, this.#write(counts)])
    await this.#written
  }

  #startPeriod(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#counts.size === 0) return
      void this.flush()
      this.#startPeriod()
    }, PERIOD_MS).unref()
  }
}
