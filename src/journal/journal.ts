import type { Delivery, Entry, Receipt, Summary } from './delivery.js'
import type { Attempt, HandOn, HandOns } from './hand-on.js'

/** Which entries, by number; oldest first unless `reverse`. */
export interface EntryRange {
  readonly from?: number
  readonly to?: number
  readonly reverse?: boolean
  readonly limit?: number
}

/**
 * The durable, ordered record of deliveries, and of their way to the targets. Only a profile's instance appends, records
 * and sweeps; any process may read meanwhile. An entry that is removed while it is read is left out.
 */
export interface Journal {
  /**
   * Records a delivery and what it is to be handed on to, in one write; resolved means it is on disk. A delivery whose
   * dedupe key (hook id and delivery id) is already recorded is counted on that entry instead.
   * @throws RelayError `storage` when it could not be made durable.
   */
  append(delivery: Delivery): Promise<Receipt>
  read(n: number): Entry | undefined
  entries(range?: EntryRange): Iterable<Entry>
  /** Like {@link entries}, without reading bodies. */
  summaries(range?: EntryRange): Iterable<Summary>
  count(): number
  /** What is waiting, in order of the entries; the cost does not grow with those that are finished. */
  unfinished(): Iterable<{ readonly n: number; readonly target: string; readonly handOn: HandOn }>
  /**
   * Records an attempt and how it then stands with its target, in one write. Nothing happens when the entry is gone.
   * An attempt whose connection failed just like the target's last one is counted on that; of more than 4,096 of an
   * entry, the last is kept.
   * @throws RelayError `storage` when it could not be made durable.
   */
  record(n: number, attempt: Attempt, handOn: HandOn): Promise<void>
  /** Records how it stands with a target that was not tried. @throws RelayError `storage` as {@link record}. */
  finish(n: number, target: string, handOn: HandOn): Promise<void>
  handOns(n: number): HandOns
  /** In the order made. */
  attempts(n: number): readonly Attempt[]
}
