import type { Database, Range, Table } from '../store/database.js'
import { dedupeKey } from './dedupe.js'
import type { Entry, Receipt } from './delivery.js'
import type { Journal } from './journal.js'
import { fromMeta, type Meta, toMeta } from './meta.js'

/**
 * The journal of a profile's database. Its tables are the file format: `journal` (number → {@link Meta}),
 * `journal-body` (number → the body's bytes), `journal-key` (dedupe key → number) and `journal-again` (number → how
 * often the delivery came again; no row for never).
 *
 * Whether a delivery is there already, which number is next, and the write itself are one transaction, so that also two
 * processes that both believe to be the instance (one was stopped, and goes on) lose nothing to each other. Numbers go
 * on from the newest entry in the table, so that one is never to be removed.
 */
export function openJournal(database: Database): Journal {
  const metas: Table<number, Meta> = database.table('journal', { keys: 'number', values: 'json' })
  const bodies: Table<number, Uint8Array> = database.table('journal-body', {
    keys: 'number',
    values: 'bytes',
  })
  const numbers: Table<string, number> = database.table('journal-key', { keys: 'string', values: 'json' })
  const repeats: Table<number, number> = database.table('journal-again', { keys: 'number', values: 'json' })

  /** Meta and body go in one write, and are removed in one; without a body the entry was removed since. */
  const toEntry = (n: number, meta: Meta): Entry | undefined => {
    const body = bodies.get(n)
    return body && { n, ...fromMeta(n, meta, body), duplicates: repeats.get(n) ?? 0 }
  }

  return {
    async append(delivery) {
      const key = dedupeKey(delivery)
      const meta = toMeta(delivery)
      return database.transact<Receipt>(() => {
        const known = numbers.get(key)
        if (known !== undefined) {
          const again = repeats.put(known, (repeats.get(known) ?? 0) + 1)
          return { result: { n: known, duplicate: true }, writes: [again] }
        }
        const n = nextNumber(metas)
        const writes = [metas.put(n, meta), bodies.put(n, delivery.body), numbers.put(key, n)]
        return { result: { n, duplicate: false }, writes }
      })
    },
    read(n) {
      const meta = metas.get(n)
      return meta && toEntry(n, meta)
    },
    *entries(range?: Range) {
      for (const { key, value } of metas.range(range)) {
        const entry = toEntry(key, value)
        if (entry) yield entry
      }
    },
    count: () => metas.count(),
  }
}

function nextNumber(metas: Table<number, Meta>): number {
  const [newest] = metas.range({ reverse: true, limit: 1 })
  return (newest?.key ?? 0) + 1
}
