import type { Row, RowRange, RowWrite } from './engine.js'
import { keyText } from './keys.js'

/** A row to be written, under its key as text. */
type Write = readonly [key: string, write: RowWrite]

/**
 * What is on its way to the disk: a decision that is made meanwhile sees it as if it were there. Reading, it takes what has
 * been committed and gives that as it will be.
 */
export class Pending {
  readonly #tables = new Map<string, Map<string, RowWrite>>()

  add(writes: readonly RowWrite[]): void {
    for (const write of writes) {
      let rows = this.#tables.get(write.table)
      if (!rows) this.#tables.set(write.table, (rows = new Map()))
      rows.set(keyText(write.key), write)
    }
  }

  /** Forgets writes that are done, or will not be; not what has been written over them since. */
  remove(writes: readonly RowWrite[]): void {
    for (const write of writes) {
      const rows = this.#tables.get(write.table)
      const key = keyText(write.key)
      if (rows?.get(key) === write) rows.delete(key)
    }
  }

  get(table: string, key: Uint8Array): RowWrite | undefined {
    const rows = this.#tables.get(table)
    return rows?.size ? rows.get(keyText(key)) : undefined
  }

  range(table: string, range: RowRange, committed: (range: RowRange) => Iterable<Row>): Iterable<Row> {
    const writes = this.#within(table, range)
    if (writes.length === 0) return committed(range)
    const { limit = Infinity, ...whole } = range
    return first(limit, merge(committed(whole), writes, range.reverse ? isAfter : isBefore))
  }

  #within(table: string, { from, to, reverse }: RowRange): Write[] {
    const rows = this.#tables.get(table)
    if (!rows?.size) return []
    const [low, high] = [from && keyText(from), to && keyText(to)]
    const within = [...rows].filter(
      ([key]) => (low === undefined || key >= low) && (high === undefined || key <= high),
    )
    const before = reverse ? isAfter : isBefore
    return within.toSorted(([a], [b]) => (before(a, b) ? -1 : 1))
  }
}

const isBefore = (a: string, b: string): boolean => a < b
const isAfter = (a: string, b: string): boolean => a > b

/** Both are in order; where both have a key, what is written counts. */
function* merge(
  committed: Iterable<Row>,
  writes: readonly Write[],
  before: (a: string, b: string) => boolean,
): Generator<Row> {
  let next = 0
  for (const row of committed) {
    const key = keyText(row.key)
    for (let write = writes[next]; write && before(write[0], key); write = writes[++next]) yield* rowOf(write)
    const same = writes[next]
    if (same?.[0] !== key) yield row
    else {
      yield* rowOf(same)
      next++
    }
  }
  for (const write of writes.slice(next)) yield* rowOf(write)
}

function rowOf([, { key, value }]: Write): Row[] {
  return value === undefined ? [] : [{ key, value }]
}

function* first(limit: number, rows: Iterable<Row>): Generator<Row> {
  if (limit <= 0) return
  let count = 0
  for (const row of rows) {
    yield row
    if (++count >= limit) return
  }
}
