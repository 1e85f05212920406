import type { Database, Range, Table } from '../store/database.js'
import { dedupeKey } from './dedupe.js'
import type { Delivery, Entry, Receipt } from './delivery.js'
import type { Journal } from './journal.js'
import { fromMeta, type Meta, toMeta } from './meta.js'

/** How many failed deliveries keep their numbers; older ones would get new numbers, which only leaves gaps. */
const MAX_FAILED = 1000

/**
 * The journal of a profile's database. Its tables are the file format: `journal` (number → {@link Meta}),
 * `journal-body` (number → the body's bytes), `journal-key` (dedupe key → number) and `journal-again` (number → how
 * often the delivery came again; no row for never).
 *
 * Numbers go on from the newest entry in the table, so that one is never to be removed.
 */
export function openJournal(database: Database): Journal {
  return new TableJournal(database)
}

class TableJournal implements Journal {
  readonly #database: Database
  readonly #metas: Table<number, Meta>
  readonly #bodies: Table<number, Uint8Array>
  readonly #numbers: Table<string, number>
  readonly #repeats: Table<number, number>
  /** The entries being written, by dedupe key: what the tables do not show yet. */
  readonly #writing = new Map<string, Promise<number>>()
  /** The repeat counts being written, by number. */
  readonly #counting = new Map<number, number>()
  /**
   * The numbers of deliveries whose write failed, by dedupe key. A write that was given up after its time limit may reach
   * the disk yet; a retry under the same number makes one entry of the two.
   */
  readonly #failed = new Map<string, number>()
  #last: number | undefined

  constructor(database: Database) {
    this.#database = database
    this.#metas = database.table('journal', { keys: 'number', values: 'json' })
    this.#bodies = database.table('journal-body', { keys: 'number', values: 'bytes' })
    this.#numbers = database.table('journal-key', { keys: 'string', values: 'json' })
    this.#repeats = database.table('journal-again', { keys: 'number', values: 'json' })
  }

  async append(delivery: Delivery): Promise<Receipt> {
    const key = dedupeKey(delivery)
    const writing = this.#writing.get(key)
    const known = writing ? await writing : this.#numbers.get(key)
    if (known !== undefined) {
      await this.#countRepeat(known)
      return { n: known, duplicate: true }
    }
    const write = this.#write(key, delivery)
    this.#writing.set(key, write)
    try {
      return { n: await write, duplicate: false }
    } finally {
      this.#writing.delete(key)
    }
  }

  read(n: number): Entry | undefined {
    const meta = this.#metas.get(n)
    return meta && this.#toEntry(n, meta)
  }

  *entries(range?: Range): Generator<Entry> {
    for (const { key, value } of this.#metas.range(range)) {
      const entry = this.#toEntry(key, value)
      if (entry) yield entry
    }
  }

  count(): number {
    return this.#metas.count()
  }

  /** Meta and body go in one write, and are removed in one; without a body the entry was removed since. */
  #toEntry(n: number, meta: Meta): Entry | undefined {
    const body = this.#bodies.get(n)
    return body && { n, ...fromMeta(n, meta, body), duplicates: this.#repeats.get(n) ?? 0 }
  }

  async #write(key: string, delivery: Delivery): Promise<number> {
    const n = this.#failed.get(key) ?? this.#takeNumber()
    try {
      await this.#database.commit([
        this.#metas.put(n, toMeta(delivery)),
        this.#bodies.put(n, delivery.body),
        this.#numbers.put(key, n),
      ])
    } catch (error) {
      this.#keepNumber(key, n)
      throw error
    }
    this.#failed.delete(key)
    return n
  }

  /** The table is read at the first write, when this process is the only one that appends, and not before. */
  #takeNumber(): number {
    const [newest] = this.#last === undefined ? this.#metas.range({ reverse: true, limit: 1 }) : []
    this.#last = (this.#last ?? newest?.key ?? 0) + 1
    return this.#last
  }

  #keepNumber(key: string, n: number): void {
    this.#failed.set(key, n)
    const [oldest] = this.#failed.keys()
    if (oldest !== undefined && this.#failed.size > MAX_FAILED) this.#failed.delete(oldest)
  }

  async #countRepeat(n: number): Promise<void> {
    const count = (this.#counting.get(n) ?? this.#repeats.get(n) ?? 0) + 1
    this.#counting.set(n, count)
    try {
      await this.#database.commit([this.#repeats.put(n, count)])
    } finally {
      if (this.#counting.get(n) === count) this.#counting.delete(n)
    }
  }
}
