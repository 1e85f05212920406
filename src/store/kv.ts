import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../base/time.js'
import type { Expectation, Expiry, Json, Operation, Store } from './contract.js'
import type { Decision, Engine, RowRange, RowWrite } from './engine.js'
import { decodeKey, encodeKey, encodePrefix } from './keys.js'
import { decodeRecord, encodeRecord, isLive } from './record.js'
import { sweep } from './sweep.js'

/** The table the store's records lie in; part of the file format. */
const TABLE = 'store'

/** The key-value store over an engine: the same steps for every backend. */
export function createStore(engine: Engine, clock: Clock): Store {
  engine.open(TABLE)
  const live = (key: Uint8Array): Json | undefined => {
    const record = engine.get(TABLE, key)
    return record && isLive(record, clock()) ? decodeRecord(record) : undefined
  }
  const holds = ({ key, value }: Expectation): boolean => sameJson(live(encodeKey(key)), value)

  return {
    async get(key) {
      const bytes = encodeKey(key)
      engine.refresh()
      return live(bytes)
    },
    async put(key, value, expiry) {
      await engine.write([putRow(encodeKey(key), value, expiry)])
    },
    async putIfAbsent(key, value, expiry) {
      const row = putRow(encodeKey(key), value, expiry)
      return engine.transact(() => onlyIf(live(row.key) === undefined, [row]))
    },
    async take(key) {
      const bytes = encodeKey(key)
      return engine.transact(() => {
        const result = live(bytes)
        return { result, writes: result === undefined ? [] : [removeRow(bytes)] }
      })
    },
    async delete(key) {
      const bytes = encodeKey(key)
      return engine.transact(() => onlyIf(live(bytes) !== undefined, [removeRow(bytes)]))
    },
    async list(prefix) {
      const from = encodePrefix(prefix)
      engine.refresh()
      return keysWithin(engine, { from, to: endOf(from) }, clock())
    },
    async write(operations, expected = []) {
      const rows = operations.map(toRow)
      for (const { key } of expected) encodeKey(key)
      if (expected.length > 0) return engine.transact(() => onlyIf(expected.every(holds), rows))
      await engine.write(rows)
      return true
    },
    sweep: () => sweep(engine, TABLE, clock),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}

function keysWithin(engine: Engine, range: RowRange, now: number): string[] {
  const keys: string[] = []
  for (const { key, value } of engine.range(TABLE, range)) if (isLive(value, now)) keys.push(decodeKey(key))
  return keys
}

/** Comes after every key that begins so, and before all other keys that come after it: no byte of UTF-8 is so large. */
function endOf(prefix: Uint8Array): Uint8Array {
  return Buffer.concat([prefix, Buffer.of(0xff)])
}

function toRow(operation: Operation): RowWrite {
  const key = encodeKey(operation.key)
  return operation.type === 'put' ? putRow(key, operation.value, operation) : removeRow(key)
}

function putRow(key: Uint8Array, value: Json, expiry: Expiry = {}): RowWrite {
  return { table: TABLE, key, value: encodeRecord(value, expiry.expiresAt) }
}

function removeRow(key: Uint8Array): RowWrite {
  return { table: TABLE, key, value: undefined }
}

function onlyIf(condition: boolean, writes: readonly RowWrite[]): Decision<boolean> {
  return { result: condition, writes: condition ? writes : [] }
}

/** Equal as JSON: the order of names is none, and what JSON leaves out does not count. */
export function sameJson(stored: Json | undefined, expected: Json | undefined): boolean {
  if (stored === undefined || expected === undefined) return stored === expected
  return isDeepStrictEqual(stored, JSON.parse(JSON.stringify(expected)))
}
