import type { Database } from '../store/database.js'
import type { Decision } from '../store/engine.js'
import { dedupeKey } from './dedupe.js'
import type { Delivery, Entry, Receipt, Summary } from './delivery.js'
import type { OnDuplicate } from './hand-on.js'
import type { Journal } from './journal.js'
import { fromMeta, type Meta, toMeta } from './meta.js'
import { type Plan, planAgain, planNew } from './plan.js'
import { createProgress, readHandOns, writeHandOns } from './progress.js'
import { nextNumber, openTables, type Tables } from './tables.js'

export interface JournalOptions {
  /** The ids of the targets a delivery is to be handed on to. May be called more than once for a delivery; must not throw. */
  readonly targetsOf?: (delivery: Delivery) => readonly string[]
  /** Default `if-failed`. */
  readonly onDuplicate?: OnDuplicate
}

/**
 * The journal of a profile's database.
 *
 * Whether a delivery is there already, which number is next, what it is handed on to, and the write itself are one
 * transaction, so that also two processes that both believe to be the instance (one was stopped, and goes on) lose
 * nothing to each other. Numbers go on from the newest entry in the table, so that one is never to be removed.
 */
export function openJournal(database: Database, options: JournalOptions = {}): Journal {
  const tables = openTables(database)
  const { metas, numbers } = tables
  return {
    async append(delivery) {
      const key = dedupeKey(delivery)
      return database.transact((transaction) => {
        const known = numbers.get(key)
        return known === undefined
          ? addNew(tables, nextNumber(tables, transaction), delivery, key, options)
          : countAgain(tables, known, delivery.receivedAt, options)
      })
    },
    read(n) {
      const meta = metas.get(n)
      return meta && readEntry(tables, n, meta)
    },
    *entries(range) {
      for (const { key, value } of metas.range(range)) {
        const entry = readEntry(tables, key, value)
        if (entry) yield entry
      }
    },
    *summaries(range) {
      for (const { key, value } of metas.range(range)) yield summarize(tables, key, value)
    },
    count: () => metas.count(),
    ...createProgress(database, tables),
  }
}

/** Meta and body go in one write, and are removed in one; without a body the entry was removed since. */
function readEntry(tables: Tables, n: number, meta: Meta): Entry | undefined {
  const { size: _, ...delivery } = fromMeta(n, meta)
  const body = tables.bodies.get(n)
  return body && { n, ...delivery, body, duplicates: tables.repeats.get(n) ?? 0 }
}

function summarize(tables: Tables, n: number, meta: Meta): Summary {
  const duplicates = tables.repeats.get(n) ?? 0
  return { n, ...fromMeta(n, meta), duplicates, handOns: readHandOns(tables, n) }
}

function addNew(
  tables: Tables,
  n: number,
  delivery: Delivery,
  key: string,
  { targetsOf }: JournalOptions,
): Decision<Receipt> {
  const { metas, bodies, numbers } = tables
  const plan = planNew(targetsOf?.(delivery) ?? [], delivery.receivedAt)
  const rows = [metas.append(n, toMeta(delivery)), bodies.append(n, delivery.body), numbers.put(key, n)]
  const result = { n, duplicate: false, targets: plan.targets }
  return { result, writes: [...rows, ...planWrites(tables, n, plan)] }
}

/** What is handed on is the entry, so that decides which targets; what came again was only counted. */
function countAgain(
  tables: Tables,
  n: number,
  now: number,
  { targetsOf, onDuplicate = 'if-failed' }: JournalOptions,
): Decision<Receipt> {
  const { metas, repeats } = tables
  const meta = targetsOf && onDuplicate !== 'never' ? metas.get(n) : undefined
  const entry = meta && readEntry(tables, n, meta)
  const targets = entry ? (targetsOf?.(entry) ?? []) : []
  const plan = planAgain(readHandOns(tables, n), targets, onDuplicate, now)
  const again = repeats.put(n, (repeats.get(n) ?? 0) + 1)
  const result = { n, duplicate: true, targets: plan.targets }
  return { result, writes: [again, ...planWrites(tables, n, plan)] }
}

function planWrites(tables: Tables, n: number, { targets, handOns }: Plan): Decision<Receipt>['writes'] {
  return targets.length === 0 ? [] : writeHandOns(tables, n, handOns)
}
