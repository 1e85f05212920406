/** One row to be stored, or removed when it has no value. */
export interface RowWrite {
  readonly table: string
  readonly key: Uint8Array
  readonly value: Uint8Array | undefined
  /** The caller knows, from within the transaction, that the key comes after all there are: its place is not looked for. */
  readonly last?: true
}

export interface Row {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

export interface RowRange {
  /** First key, inclusive. Default: the first there is. */
  readonly from?: Uint8Array
  /** Last key, inclusive. Default: the last there is. */
  readonly to?: Uint8Array
  readonly reverse?: boolean
  readonly limit?: number
}

/** Stands for a time in which nobody else has written: it is the same from one decision to the next while that is so. */
export type Transaction = object

/** What a transaction came to: its answer, and the rows to write for it. */
export interface Decision<T> {
  readonly result: T
  readonly writes: readonly RowWrite[]
}

/**
 * What a backend is: named tables of bytes under bytes, in the order of the keys' bytes. All else (keys, values, expiry,
 * the steps of the store) is written once, over this.
 *
 * Reads are synchronous and may be as old as the current turn of the event loop. Writes resolve when durable and reject with
 * RelayError `storage`; rows given to them must not be changed before that.
 */
export interface Engine extends AsyncDisposable {
  /** Makes a table, or opens the one there is; to be called before any other use of it. May wait for other writers. */
  open(table: string): void
  /** The value is lent until the next read: whoever keeps it copies it. */
  get(table: string, key: Uint8Array): Uint8Array | undefined
  range(table: string, range: RowRange): Iterable<Row>
  /** Of what is committed, also within {@link transact}. */
  count(table: string): number
  /** What a table takes in storage, in bytes, of what is committed; the cost does not grow with it. */
  bytes(table: string): number
  /** All rows or none. Concurrent calls share a flush. */
  write(writes: readonly RowWrite[]): Promise<void>
  /**
   * Calls `decide` and writes what it decided, all rows or none, as if nobody else, in no process, could write meanwhile: when
   * somebody did, it is called again. What it reads is the newest there is. When it throws, nothing is written.
   */
  transact<T>(decide: (transaction: Transaction) => Decision<T>): Promise<T>
  /** Reads from here on see whatever any process has committed by now. */
  refresh(): void
  /** Frees what readers that died have left behind. */
  tidy(): void
}
