import type { Delivery, Entry, Receipt } from './delivery.js'

/** The durable, ordered record of deliveries. Only a profile's instance appends; any process may read. */
export interface Journal {
  /**
   * Records a delivery; resolved means it is on disk. A delivery whose dedupe key (hook id and delivery id) is already
   * recorded is counted on that entry instead.
   * @throws RelayError `storage` when it could not be made durable.
   */
  append(delivery: Delivery): Promise<Receipt>
  read(n: number): Entry | undefined
  /** Entries without gaps filled: oldest first, or newest first with `reverse`. */
  entries(range?: { from?: number; to?: number; reverse?: boolean; limit?: number }): Iterable<Entry>
  count(): number
}
