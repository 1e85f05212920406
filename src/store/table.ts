import type { Range, Table, TableOptions, TableValue } from './database.js'
import type { Engine, RowRange } from './engine.js'
import { decodeNumber, encodeKey, encodeNumber } from './keys.js'

/** A table of an engine, its keys and values as its user knows them. */
export function createTable<Key extends number | string, Value extends TableValue>(
  engine: Engine,
  name: string,
  options: TableOptions,
): Table<Key, Value> {
  engine.open(name)
  const encode = options.values === 'bytes' ? encodeBytes : encodeJson
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a table holds is what its name stands for
  const decode = (options.values === 'bytes' ? decodeBytes : decodeJson) as (bytes: Uint8Array) => Value
  return {
    get(key) {
      const bytes = engine.get(name, toBytes(key))
      return bytes && decode(bytes)
    },
    *range(range = {}) {
      for (const { key, value } of engine.range(name, toRowRange(range))) {
        yield { key: decodeNumber(key), value: decode(value) }
      }
    },
    count: () => engine.count(name),
    bytes: () => engine.bytes(name),
    put: (key, value) => ({ table: name, key: toBytes(key), value: encode(value) }),
    append: (key, value) => ({ table: name, key: toBytes(key), value: encode(value), last: true }),
    remove: (key) => ({ table: name, key: toBytes(key), value: undefined }),
  }
}

function toBytes(key: number | string): Uint8Array {
  return typeof key === 'number' ? encodeNumber(key) : encodeKey(key)
}

function toRowRange({
  from = 0,
  to = Number.MAX_SAFE_INTEGER,
  reverse = false,
  limit = Infinity,
}: Range): RowRange {
  return { from: encodeNumber(from), to: encodeNumber(to), reverse, limit }
}

const encodeJson = (value: TableValue): Uint8Array => Buffer.from(JSON.stringify(value))
const decodeJson = ({ buffer, byteOffset, byteLength }: Uint8Array): unknown =>
  JSON.parse(Buffer.from(buffer, byteOffset, byteLength).toString())

function encodeBytes(value: TableValue): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new TypeError('A table of bytes was given something else')
}
/** A copy, since they are lent; of plain bytes, whatever subclass the backend hands out. */
const decodeBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)
