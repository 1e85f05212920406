// Writes pairs until it is killed, several at once, and prints the number of each that it was told is durable.
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { attempt, bodyOf, delivery, succeeded } from '../../journal/rig.js'
import { say } from './talk.js'

const [, , folder = '', first = '0', where = 'here'] = process.argv
const database = await openDatabase({ kind: 'file', folder, thread: where === 'thread' })
const { store } = database
const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
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
      const receipt = await journal.append(delivery(`${i}`, { body: bodyOf(`${i}`) }))
      say({ row: i })
      if (i % 3 === 0) await journal.record(receipt.n, attempt('a'), succeeded)
      // As a sender does that got no answer.
      if (i % 5 === 0) await journal.append(delivery(`${i}`, { body: bodyOf(`${i}`) }))
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
