import type { Json, Store } from './contract.js'
import type { Decision, RowWrite, Transaction } from './engine.js'

/** A row of a {@link Table}: bytes for payloads, JSON for all else. */
export type TableValue = Json | Uint8Array

export interface Range {
  /** First number, inclusive. Default: the first there is. */
  readonly from?: number
  /** Last number, inclusive. Default: the last there is. */
  readonly to?: number
  /** Newest first. */
  readonly reverse?: boolean
  readonly limit?: number
}

/** One row to be written or removed; made by {@link Table}, carried out by {@link Database.commit}. */
export type TableWrite = RowWrite

/** Rows in the order of their keys, which are all numbers (non-negative safe integers) or all short strings. */
export interface Table<Key extends number | string, Value extends TableValue> {
  get(key: Key): Value | undefined
  /** A consistent view; rows changed meanwhile may or may not be seen. Numbered tables only. */
  range(range?: Range): Iterable<{ readonly key: number; readonly value: Value }>
  count(): number
  /** What the table takes in storage, in bytes; the cost does not grow with it. */
  bytes(): number
  put(key: Key, value: Value): TableWrite
  /** For a key that comes after all others, as was seen within the transaction. */
  append(key: Key, value: Value): TableWrite
  remove(key: Key): TableWrite
}

/** Table names and how their values are kept. The names are part of the file format. */
export interface TableOptions {
  readonly keys: 'number' | 'string'
  readonly values: 'json' | 'bytes'
}

/**
 * Where a profile's data lives: the key-value store, and ordered tables for the journal beside it.
 * Reads are synchronous (memory-mapped); writes resolve when durable.
 */
export interface Database extends AsyncDisposable {
  readonly store: Store
  /**
   * The table of this name, made when there is none; to be called when starting, since it may wait for other writers.
   * @throws RelayError `storage`
   */
  table<Key extends number | string, Value extends TableValue>(
    name: string,
    options: TableOptions,
  ): Table<Key, Value>
  /**
   * Writes all rows or none; resolved means durable. Concurrent commits share a flush.
   * @throws RelayError `storage` when it could not be made durable within its limit (4 s), as on a full disk.
   */
  commit(writes: readonly TableWrite[]): Promise<void>
  /**
   * Calls `decide` and writes what it decided, all rows or none, as if nobody else, in no process, could write meanwhile: when
   * somebody did, it is called again. What it reads of the tables is the newest there is. It must not wait for anything, nor
   * do anything but decide; when it throws, nothing is written.
   * @throws RelayError `storage` as {@link commit}; what `decide` throws.
   */
  transact<T>(decide: (transaction: Transaction) => Decision<T>): Promise<T>
}
