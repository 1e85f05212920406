import { RelayError } from '../base/errors.js'
import type { Engine, Row, RowRange, RowWrite } from './engine.js'
import { keyText } from './keys.js'

/** One table: its rows, and their keys as texts, in order. */
interface Rows {
  readonly values: Map<string, Uint8Array>
  readonly keys: string[]
  bytes: number
}

/** An engine that forgets everything when it is closed. */
export function createMemoryEngine(): Engine {
  const tables = new Map<string, Rows>()
  let open = true
  const rowsOf = (table: string): Rows => {
    if (!open) throw new RelayError('storage', 'The memory store is closed')
    const rows = tables.get(table) ?? { values: new Map(), keys: [], bytes: 0 }
    tables.set(table, rows)
    return rows
  }
  const apply = (writes: readonly RowWrite[]): void => {
    for (const { table, key, value } of writes) set(rowsOf(table), keyText(key), value?.slice())
  }
  return {
    open: (table) => void rowsOf(table),
    get: (table, key) => rowsOf(table).values.get(keyText(key)),
    range: (table, range) => select(rowsOf(table), range),
    count: (table) => rowsOf(table).keys.length,
    bytes: (table) => rowsOf(table).bytes,
    async write(writes) {
      apply(writes)
    },
    async transact(decide) {
      const { result, writes } = decide({})
      apply(writes)
      return result
    },
    refresh() {},
    tidy() {},
    async [Symbol.asyncDispose]() {
      open = false
      tables.clear()
    },
  }
}

function set(rows: Rows, key: string, value: Uint8Array | undefined): void {
  const { values, keys } = rows
  const at = position(keys, key)
  const before = values.get(key)
  rows.bytes += (value ? key.length + value.length : 0) - (before ? key.length + before.length : 0)
  if (value === undefined) {
    if (values.delete(key)) keys.splice(at, 1)
    return
  }
  if (!values.has(key)) keys.splice(at, 0, key)
  values.set(key, value)
}

/** A snapshot: the rows as they were when the iteration began. */
function* select({ values, keys }: Rows, { from, to, reverse, limit = Infinity }: RowRange): Generator<Row> {
  const first = from ? position(keys, keyText(from)) : 0
  const last = to ? position(keys, `${keyText(to)}\0`) : keys.length
  const chosen = reverse
    ? keys.slice(Math.max(first, last - limit), last).toReversed()
    : keys.slice(first, Math.min(last, first + limit))
  const rows = chosen.map((key) => [key, values.get(key)] as const)
  for (const [key, value] of rows) {
    if (value) yield { key: Buffer.from(key, 'latin1'), value: value.slice() }
  }
}

/** Where `key` is among the ordered `keys`, or belongs. */
function position(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}
