// Tries for everything that another process tries for at the same time. Prints what it won.
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from './talk.js'

const [, , folder = '', rounds = ''] = process.argv
const { store } = await openDatabase({ kind: 'file', folder })
const won = { put: [] as number[], taken: [] as number[], deleted: [] as number[] }

say('ready')
await heard()
await Promise.all(
  Array.from({ length: Number(rounds) }, async (_, i) => {
    if (await store.putIfAbsent(`put:${i}`, process.pid)) won.put.push(i)
    if ((await store.take(`take:${i}`)) !== undefined) won.taken.push(i)
    if (await store.delete(`delete:${i}`)) won.deleted.push(i)
    await countUp()
  }),
)
say(won)
process.exit()

async function countUp(): Promise<void> {
  for (;;) {
    const value = await store.get('count')
    const next = Number(value ?? 0) + 1
    if (await store.write([{ type: 'put', key: 'count', value: next }], [{ key: 'count', value }])) return
  }
}
