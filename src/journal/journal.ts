import type { Delivery, Entry, Receipt, Summary } from './delivery.js'
import type { Attempt, Forward, ForwardCounts, Forwards } from './forward.js'
import type { Guard } from './guarded-write.js'
import type { Retention } from './retention.js'
import type { Filter } from './select.js'

/** A change of the journal, for observers. */
export type JournalChange =
  /** The entry is new, or its duplicates, forwards or attempts have changed. */
  | { readonly type: 'changed'; readonly n: number }
  /** Retention has removed entries: `oldest` is the first that is left. */
  | { readonly type: 'removed'; readonly oldest: number }

/** The last attempt at a target: what a line of a list shows of it. */
export interface LastAttempt {
  readonly n: number
  readonly target: string
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  readonly ms: number
}

/** The deliveries received in one minute. */
export interface Minute {
  /** Its number since 1970. */
  readonly minute: number
  readonly received: number
  /** How many have failed at a target. */
  readonly failed: number
}

export interface AppendOptions {
  /** Called with the receipt when the write becomes durable after the promise was rejected. Must not throw. */
  readonly onLate?: (receipt: Receipt) => void
  /** The ids of the targets that it is forwarded to. Default: those of the routes. */
  readonly targets?: readonly string[] | undefined
}

/** A step of a search through the journal. */
export interface WalkStep {
  /** What passes the filter, newest first. Often nothing, where no index helps. */
  readonly found: readonly Summary[]
  /** The numbers from here on were looked at. 0 or 1: all. */
  readonly before: number
}

/** Which of the forwards that wait. Default: all. */
export interface WaitingFilter {
  readonly target?: string | undefined
  /** Only those of entries with a greater number. */
  readonly after?: number | undefined
}

/** A forward that waits. */
export interface WaitingForward {
  readonly n: number
  readonly target: string
  readonly forward: Forward
}

/**
 * The durable, ordered record of deliveries and of their forwarding. Only a profile's instances append, record and sweep;
 * any process may read at the same time. An entry that is removed or cannot be read is left out.
 *
 * Every method rejects with RelayError `storage` when the database fails, and, where it writes, when another process has taken
 * the profile.
 */
export interface Journal {
  /**
   * Records a delivery and its forwards in one transaction; resolved means durable. A delivery whose dedupe key (hook id and
   * delivery id) is already recorded is counted on that entry instead, within a second.
   */
  append(delivery: Delivery, options?: AppendOptions): Promise<Receipt>
  /**
   * Lets the forwards of an entry to these targets wait again, in one transaction, also where they succeeded or never were. False
   * when there is no such entry (any more).
   */
  again(n: number, targets: readonly string[]): Promise<boolean>
  /** Writes the counts of duplicates that are not written yet. Does not reject. */
  flush(): Promise<void>
  read(n: number): Promise<Entry | undefined>
  /** The number of the newest entry; 0 when there is none. */
  newest(): Promise<number>
  /** The number of entries. */
  count(): Promise<number>
  /** Those of the delivery ids that the journal has, under any hook, or had until retention removed them in the last 7 days. */
  known(deliveryIds: readonly string[]): Promise<ReadonlySet<string>>
  /** The entries that pass the filter, newest first. Reads only as far as it is iterated. */
  select(filter?: Filter): AsyncIterable<Summary>
  /** {@link Journal.select} in short steps, for a caller that may stop before something is found. */
  walk(filter: Filter): AsyncIterable<WalkStep>
  /** Which of these entries have the text in their body, in any case of the letters a to z. */
  withText(numbers: readonly number[], text: string): Promise<ReadonlySet<number>>
  /** At most `limit` entries with a number above `n`, oldest first. */
  after(n: number, limit: number): Promise<readonly Summary[]>
  /** The entries with these numbers that exist, in the order of the numbers given. */
  summaries(numbers: readonly number[]): Promise<readonly Summary[]>
  /** Every forward that waits, in order of the entries and, for each, of the routes. The cost does not grow with the finished ones. */
  waiting(filter?: WaitingFilter): AsyncIterable<WaitingForward>
  /**
   * Records an attempt and the forward's new status in one transaction; nothing when the entry is gone. An attempt whose
   * connection failed like the target's last one is counted on that one; of more than 4,096 of an entry the last is kept.
   * Where `fence` does not hold, nothing is recorded.
   */
  record(n: number, attempt: Attempt, forward: Forward, fence?: Guard): Promise<void>
  /** Records the status of a forward that was not attempted, if `fence` holds. */
  finish(n: number, target: string, forward: Forward, fence?: Guard): Promise<void>
  forwards(n: number): Promise<Forwards>
  /** How many forwards to each target have which status. Reads all of them. */
  counts(): Promise<ReadonlyMap<string, ForwardCounts>>
  /** The minutes of this span, in milliseconds, in which deliveries were received, with how many; `failed`: of those, how many have. */
  minutes(from: number, until: number): Promise<readonly Minute[]>
  /** In the order made. */
  attempts(n: number): Promise<readonly Attempt[]>
  /** The last attempt of each of these entries at each of its targets. */
  lastAttempts(numbers: readonly number[]): Promise<readonly LastAttempt[]>
  /** Removes entries that are too old or too many; see {@link Retention}. Resolves to how many. */
  sweep(retention: Retention): Promise<number>
}
