// Writes pairs until it is killed, several at once, and prints the number of each that it was told is durable.
import { openDatabase } from '../../../src/store/open.js'
import { say } from './talk.js'

const [, , folder = '', first = '0'] = process.argv
const database = await openDatabase({ kind: 'file', folder })
const { store } = database
const table = database.table<number, Uint8Array>('rows', { keys: 'number', values: 'bytes' })
const ids = database.table<string, number>('ids', { keys: 'string', values: 'json' })
let n = Number(first)

await Promise.all([
  ...Array.from({ length: 8 }, async () => {
    for (;;) {
      const i = n++
      const value = `${i} `.repeat(1 + (i % 2000))
      await store.write([
        { type: 'put', key: `a:${i}`, value },
        { type: 'put', key: `b:${i}`, value },
      ])
      say({ pair: i })
    }
  }),
  ...Array.from({ length: 8 }, async () => {
    for (;;) {
      const i = n++
      await database.commit([table.put(i, Buffer.alloc(1 + (i % 9000), i)), ids.put(`id ${i}`, i)])
      say({ row: i })
    }
  }),
  (async () => {
    for (;;) {
      // The old state or the new: the sum never changes.
      const [left, right] = [await store.get('left'), await store.get('right')]
      const moved = { left: Number(left ?? 500) - 1, right: Number(right ?? 500) + 1 }
      await store.write(
        [
          { type: 'put', key: 'left', value: moved.left },
          { type: 'put', key: 'right', value: moved.right },
        ],
        [{ key: 'left', value: left }],
      )
    }
  })(),
])
