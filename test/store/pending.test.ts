import {
  array,
  assert,
  asyncProperty,
  boolean,
  constant,
  integer,
  oneof,
  option,
  record,
  uint8Array,
} from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row, RowRange, RowWrite } from '../../src/store/engine.js'
import { createMemoryEngine } from '../../src/store/memory.js'
import { Pending } from '../../src/store/pending.js'

const TABLE = 'rows'
/** Few, so that they often meet; some with bytes that are no ASCII. */
const key = uint8Array({ minLength: 1, maxLength: 2 }).map((bytes) => bytes.map((byte) => (byte % 3) * 100))
const write = record({
  table: constant(TABLE),
  key,
  value: oneof(constant(undefined), uint8Array({ maxLength: 1 })),
})
const range = record({
  from: option(key, { nil: undefined }),
  to: option(key, { nil: undefined }),
  reverse: boolean(),
  limit: oneof(constant(Infinity), integer({ min: 0, max: 4 })),
}).map(({ from, to, ...rest }): RowRange => ({ ...(from && { from }), ...(to && { to }), ...rest }))

async function engineWith(writes: readonly RowWrite[]) {
  const engine = createMemoryEngine()
  engine.open(TABLE)
  await engine.write(writes)
  return engine
}

const plain = (rows: Iterable<Row>): [number[], number[]][] =>
  [...rows].map((row) => [[...row.key], [...row.value]])

describe('what is on its way', () => {
  it('is seen over what is committed as if it were there', async () => {
    await assert(
      asyncProperty(array(write), array(write), range, key, async (before, writes, asked, one) => {
        await using committed = await engineWith(before)
        await using expected = await engineWith([...before, ...writes])
        const pending = new Pending()
        pending.add(writes)
        const rows = pending.range(TABLE, asked, (part) => committed.range(TABLE, part))
        expect(plain(rows)).toEqual(plain(expected.range(TABLE, asked)))
        const found = pending.get(TABLE, one)
        expect(found ? found.value : committed.get(TABLE, one)).toEqual(expected.get(TABLE, one))
      }),
    )
  })

  it('is forgotten, but for what was written over it', async () => {
    await assert(
      asyncProperty(array(write), array(write), async (first, second) => {
        const pending = new Pending()
        pending.add(first)
        pending.add(second)
        pending.remove(first)
        const onlySecond = new Pending()
        onlySecond.add(second)
        const all: RowRange = {}
        const none = (): Row[] => []
        expect(plain(pending.range(TABLE, all, none))).toEqual(plain(onlySecond.range(TABLE, all, none)))
        pending.remove(second)
        for (const { key: one } of [...first, ...second]) expect(pending.get(TABLE, one)).toBeUndefined()
      }),
    )
  })
})
