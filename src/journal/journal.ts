import type { Delivery, Entry, Receipt, Summary } from './delivery.js'
import type { Attempt, Forward, ForwardCounts, Forwards } from './forward.js'
import type { Retention } from './retention.js'
import type { Filter } from './select.js'

/** A forward that waits. */
export interface WaitingForward {
  readonly n: number
  readonly target: string
  readonly forward: Forward
}

/**
 * The durable, ordered record of deliveries and of their forwarding. Only a profile's instance appends, records and sweeps;
 * any process may read at the same time. An entry that is removed or cannot be read is left out.
 *
 * Every method rejects with RelayError `storage` when the database fails, and, where it writes, when another process has taken
 * the profile.
 */
export interface Journal {
  /**
   * Records a delivery and its forwards in one transaction; resolved means durable. A delivery whose dedupe key (hook id and
   * delivery id) is already recorded is counted on that entry instead, within a second.
   * @param onLate Called with the receipt when the write becomes durable after this promise was rejected. Must not throw.
   */
  append(delivery: Delivery, onLate?: (receipt: Receipt) => void): Promise<Receipt>
  /** Writes the counts of duplicates that are not written yet. Does not reject. */
  flush(): Promise<void>
  read(n: number): Promise<Entry | undefined>
  /** The number of the newest entry; 0 when there is none. */
  newest(): Promise<number>
  /** The number of entries. */
  count(): Promise<number>
  /** The entries that pass the filter, newest first. Reads only as far as it is iterated. */
  select(filter?: Filter): AsyncIterable<Summary>
  /** At most `limit` entries with a number above `n`, oldest first. */
  after(n: number, limit: number): Promise<readonly Summary[]>
  /** The entries with these numbers that exist, in the order of the numbers given. */
  summaries(numbers: readonly number[]): Promise<readonly Summary[]>
  /** Every forward that waits, in order of the entries and, for each, of the routes. The cost does not grow with the finished ones. */
  waiting(): AsyncIterable<WaitingForward>
  /**
   * Records an attempt and the forward's new status in one transaction; nothing when the entry is gone. An attempt whose
   * connection failed like the target's last one is counted on that one; of more than 4,096 of an entry the last is kept.
   */
  record(n: number, attempt: Attempt, forward: Forward): Promise<void>
  /** Records the status of a forward that was not attempted. */
  finish(n: number, target: string, forward: Forward): Promise<void>
  forwards(n: number): Promise<Forwards>
  /** How many forwards to each target have which status. Reads all of them. */
  counts(): Promise<ReadonlyMap<string, ForwardCounts>>
  /** In the order made. */
  attempts(n: number): Promise<readonly Attempt[]>
  /** Removes entries that are too old or too many; see {@link Retention}. Resolves to how many. */
  sweep(retention: Retention): Promise<number>
}
