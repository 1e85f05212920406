import { createCached } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { type Clock, systemClock } from '../base/time.js'
import { fetchRows, type Sql, type Tx } from './sql.js'

/** Value of a record: any JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Encrypts the values of records in a database that others can read and write. */
export interface RecordCipher {
  encrypt(recordKey: string, value: Json): string
  /**
   * @throws RelayError `settings` for a record whose key is not set; `storage` for a record that was changed or moved
   */
  decrypt(recordKey: string, stored: string): Json
  /** First characters of every record under the current key. */
  readonly currentPrefix: string
  /** First characters of every record under the previous key, if there is one. */
  readonly previousPrefix: string | undefined
}

/** Longest key, in bytes of UTF-8. */
const MAX_KEY_BYTES = 1024
/** Sorts after every possible continuation of a prefix: the last Unicode character, repeated to the length of a key. */
const LAST_SUFFIX = '\u{10ffff}'.repeat(MAX_KEY_BYTES / 4)
/** Most records that one transaction of a sweep deletes. */
const SWEEP = 500

/** Records within a transaction: see {@link Store.update}. */
export interface Records {
  get<Value = Json>(key: string): Tx<Value | undefined>
  /**
   * @param expiresAt milliseconds since 1970-01-01 UTC from which the record no longer exists. Default: never. NaN
   * counts as past.
   */
  put(key: string, value: Json, expiresAt?: number): Tx<void>
  /** False if the record did not exist. */
  delete(key: string): Tx<boolean>
}

/** The part of a {@link Store} that reads one record. */
export interface StoreReader {
  get<Value = Json>(key: string): Promise<Value | undefined>
}

/** Options of a transaction; `announces` as that of a write. */
interface AnnounceOptions {
  readonly announces?: readonly number[] | undefined
}

/**
 * In a notice to the other relays of a profile, where the numbers of entries are: that the sources or routes that the
 * profile stores have changed. No entry has this number.
 */
export const SETTINGS_CHANGED = 0
/** Options of a transaction that changes them. */
export const SETTINGS_NOTICE: AnnounceOptions = { announces: [SETTINGS_CHANGED] }

/** The part of a {@link Store} that runs transactions. */
export interface StoreUpdater {
  /** Runs a transaction over the records. The transaction may run again after a failure, so it changes nothing else. */
  update<Result>(work: (records: Records) => Tx<Result>, options?: AnnounceOptions): Promise<Result>
}

/**
 * Small records under string keys. A record past its `expiresAt` does not exist for any method. A change is durable
 * when its method resolves; after a crash the old state or the new is there, never a mix.
 * Every method rejects with RelayError `storage` when the database fails, and with `bad_request` for a key that is
 * empty, longer than 1 KiB, has a NUL, or is not well-formed Unicode. Messages name no value.
 */
export interface Store extends StoreReader, StoreUpdater {
  put(key: string, value: Json, expiresAt?: number): Promise<void>
  /** Gets and deletes a record, so that only one of several callers gets the value. */
  consume(key: string): Promise<Json | undefined>
  /** False if the record did not exist. */
  delete(key: string): Promise<boolean>
  /** Lists every key that starts with `prefix`, in the order of their UTF-8 bytes. */
  list(prefix: string): Promise<string[]>
  /** Deletes expired records, in bounded steps. */
  sweep(): Promise<void>
}

interface StoreOptions {
  readonly clock?: Clock | undefined
  /** Opens the cipher of the values at its first use. Each value is bound to its key. Default: values are JSON text. */
  readonly cipher?: (() => Promise<RecordCipher>) | undefined
  /** True for keys whose values are never encrypted, so that they can be read without the cipher. Default: none. */
  readonly isPlain?: (key: string) => boolean
}

/** Creates the key-value store in the table `kv` of a profile's database. */
export function createStore(sql: Sql, options: StoreOptions = {}): Store {
  const { clock = systemClock, cipher: open, isPlain = () => false } = options
  const cipherOf = createCached(Infinity, async () => open?.())
  const update: Store['update'] = async (work, written) => {
    const cipher = await cipherOf()
    const records = recordsOf(clock, (key) => (isPlain(key) ? undefined : cipher))
    return sql.write(() => work(records), written)
  }
  return {
    async get<Value>(key: string) {
      const cipher = isPlain(key) ? undefined : await cipherOf()
      const [row] = await sql.query<{ value: string }>(GET, [checkKey(key), clock()])
      return row && decode<Value>(cipher, key, row.value)
    },
    put: (key, value, expiresAt) => update((records) => records.put(key, value, expiresAt)),
    consume: (key) =>
      update(function* (records) {
        const value = yield* records.get(key)
        if (value !== undefined) yield* records.delete(key)
        return value
      }),
    delete: (key) => sql.write(() => recordsOf(clock, () => undefined).delete(key)),
    async list(prefix) {
      const query = `SELECT key FROM kv WHERE key BETWEEN ? AND ? AND ${LIVE} ORDER BY key`
      const rows = await sql.query<{ key: string }>(query, [prefix, prefix + LAST_SUFFIX, clock()])
      return rows.map(({ key }) => key)
    },
    update,
    async sweep() {
      const query = `DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE expires_at <= ? LIMIT ${SWEEP}) RETURNING key`
      for (let count = SWEEP; count === SWEEP;)
        count = (await sql.write(() => fetchRows(query, clock()))).length
    },
  }
}

const LIVE = '(expires_at IS NULL OR expires_at > ?)'
const GET = `SELECT value FROM kv WHERE key = ? AND ${LIVE}`

function recordsOf(clock: Clock, cipherOf: (key: string) => RecordCipher | undefined): Records {
  return {
    *get<Value>(key: string) {
      const [row] = yield* fetchRows<{ value: string }>(GET, checkKey(key), clock())
      return row && decode<Value>(cipherOf(key), key, row.value)
    },
    *put(key, value, expiresAt = Infinity) {
      const text = cipherOf(key)?.encrypt(checkKey(key), value) ?? JSON.stringify(value)
      // NaN counts as past: a wrong computation must not make a record permanent.
      const end = Number.isNaN(expiresAt) ? -Infinity : expiresAt
      yield* fetchRows(
        `INSERT INTO kv (key, value, expires_at) VALUES (?, ?, ?)
          ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
        checkKey(key),
        text,
        end === Infinity ? null : end,
      )
    },
    *delete(key) {
      const rows = yield* fetchRows(
        `DELETE FROM kv WHERE key = ? AND ${LIVE} RETURNING key`,
        checkKey(key),
        clock(),
      )
      return rows.length > 0
    },
  }
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what it has put there
function decode<Value>(cipher: RecordCipher | undefined, key: string, text: string): Value {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
    return (cipher ? cipher.decrypt(key, text) : JSON.parse(text)) as Value
  } catch (error) {
    // The parser's message quotes the text, which may be a token.
    throw error instanceof RelayError ? error : changedRecord(key)
  }
}

function checkKey(key: string): string {
  const bytes = Buffer.from(key)
  const refuse = (why: string): RelayError => new RelayError('bad_request', `Invalid key: ${why}`)
  if (key === '') throw refuse('empty')
  // UTF-8 replaces an unpaired surrogate by U+FFFD, so two keys would become one.
  if (bytes.toString() !== key) throw refuse('not well-formed Unicode')
  // PostgreSQL's text columns cannot store NUL.
  if (bytes.includes(0)) throw refuse('NUL')
  if (bytes.length > MAX_KEY_BYTES) throw refuse(`longer than ${MAX_KEY_BYTES} bytes`)
  return key
}

/**
 * Error for a record that another program has changed. Names only the record's kind, since the rest of its key may name
 * a user.
 */
export function changedRecord(key: string): RelayError {
  const [kind = ''] = key.split(':')
  return new RelayError(
    'storage',
    `A record of the database (${kind}) was changed or moved by another program, and is not used. Sign in again, or restore a backup`,
  )
}
