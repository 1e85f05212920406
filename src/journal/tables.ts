import type { Database, Table } from '../store/database.js'
import type { Transaction } from '../store/engine.js'
import type { HandOns } from './hand-on.js'
import type { Meta } from './meta.js'

/** How hand-ons are kept. Part of the file format, like {@link Meta}. */
export type HandOnRow = {
  readonly v: 1
  readonly targets: HandOns
}

/** The journal's tables. They are the file format; what a row holds may gain fields, but never change. */
export interface Tables {
  /** By entry number, like all but two. */
  readonly metas: Table<number, Meta>
  /** The body's bytes. */
  readonly bodies: Table<number, Uint8Array>
  /** Dedupe key → entry number. */
  readonly numbers: Table<string, number>
  /** How often the delivery came again; no row for never. */
  readonly repeats: Table<number, number>
  /** How it stands with each target; no row for an entry that has none. */
  readonly handOns: Table<number, HandOnRow>
  /** There while an entry waits for a target: what a start reads, however many entries are finished. */
  readonly open: Table<number, true>
  /** By {@link firstAttempt} of the entry and on; see `attempt-row.ts`. */
  readonly attempts: Table<number, Uint8Array>
}

/** Rows of attempts an entry may have: the power of two above what a target that is down for 24 h makes of one, probed once a minute. */
export const MAX_ATTEMPTS = 4096

/** The key of an entry's first attempt; those of the next entry begin {@link MAX_ATTEMPTS} later. */
export const firstAttempt = (n: number): number => n * MAX_ATTEMPTS

/** May wait for other writers, as opening a table does. @throws RelayError `storage` */
export function openTables(database: Database): Tables {
  return {
    metas: database.table('journal', { keys: 'number', values: 'json' }),
    bodies: database.table('journal-body', { keys: 'number', values: 'bytes' }),
    numbers: database.table('journal-key', { keys: 'string', values: 'json' }),
    repeats: database.table('journal-again', { keys: 'number', values: 'json' }),
    handOns: database.table('journal-handon', { keys: 'number', values: 'json' }),
    open: database.table('journal-open', { keys: 'number', values: 'json' }),
    attempts: database.table('journal-attempt', { keys: 'number', values: 'bytes' }),
  }
}

/** The number given last, while nobody else may have added to the entries. */
const given = new WeakMap<Transaction, number>()

/** The number of the next entry. */
export function nextNumber(tables: Tables, transaction: Transaction): number {
  const number = (given.get(transaction) ?? newestNumber(tables)) + 1
  given.set(transaction, number)
  return number
}

/** 0 when there is no entry. */
export function newestNumber({ metas }: Tables): number {
  const [newest] = metas.range({ reverse: true, limit: 1 })
  return newest?.key ?? 0
}
