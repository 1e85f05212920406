/** What a store keeps: anything JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

export interface Expiry {
  /** Milliseconds since 1970-01-01 UTC from which the record no longer exists. Default: it stays. */
  readonly expiresAt?: number | undefined
}

export type Operation =
  | ({ readonly type: 'put'; readonly key: string; readonly value: Json } & Expiry)
  | { readonly type: 'delete'; readonly key: string }

/**
 * What must hold for a {@link Store.write} to happen: the value now under `key`, undefined for none. It must give the same JSON
 * text as the stored one, as a value does that was read or written before.
 */
export interface Expectation {
  readonly key: string
  readonly value: Json | undefined
  /** Another form of the value, as good as the first: a store that encrypts has the value under either of two keys. */
  readonly or?: Json | undefined
}

/** No key is longer, in bytes of UTF-8: the limits of the keychains are near. */
export const MAX_KEY_BYTES = 1024

/**
 * Small records under string keys. A record past its `expiresAt` does not exist for any method. When a method that
 * changes something has resolved, the change is durable; after a crash the old state or the new is there, never a mix.
 *
 * Every method rejects with RelayError `storage` when the backend fails or does not answer within its limit, and with
 * `bad_request` for a key that is empty, longer than {@link MAX_KEY_BYTES}, has a NUL, or is not well-formed Unicode.
 * Messages name the store, never a value.
 */
export interface Store extends AsyncDisposable {
  get(key: string): Promise<Json | undefined>
  put(key: string, value: Json, expiry?: Expiry): Promise<void>
  /** Stores only where there is nothing; false when there was something. One of any number of callers gets true. */
  putIfAbsent(key: string, value: Json, expiry?: Expiry): Promise<boolean>
  /** Gets and deletes in one step. One of any number of callers gets the value. */
  take(key: string): Promise<Json | undefined>
  /** False when there was none. */
  delete(key: string): Promise<boolean>
  /** Every key that starts with `prefix` (every key for ''), in order of their UTF-8 bytes. */
  list(prefix: string): Promise<string[]>
  /** Does all of the operations or none. False, and nothing done, when an expectation does not hold. */
  write(operations: readonly Operation[], expected?: readonly Expectation[]): Promise<boolean>
  /** Deletes what has expired, in bounded steps; returns how many records went. */
  sweep(): Promise<number>
}
