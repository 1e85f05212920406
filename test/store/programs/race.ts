// Tries for everything that another process tries for at the same time; with a prefix, in the keychain. Prints what it won.
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from './talk.js'

const [, , folder = '', rounds = '', prefix = ''] = process.argv
const { store } = await openDatabase({ kind: prefix === '' ? 'file' : 'keychain', folder })
const count = `${prefix}count`
const won = { put: [] as number[], taken: [] as number[], deleted: [] as number[] }

say('ready')
await heard()
await Promise.all(
  Array.from({ length: Number(rounds) }, async (_, i) => {
    if (await store.putIfAbsent(`${prefix}put:${i}`, process.pid)) won.put.push(i)
    if ((await store.take(`${prefix}take:${i}`)) !== undefined) won.taken.push(i)
    if (await store.delete(`${prefix}delete:${i}`)) won.deleted.push(i)
    await countUp()
  }),
)
say(won)
process.exit()

async function countUp(): Promise<void> {
  for (;;) {
    const value = await store.get(count)
    const next = Number(value ?? 0) + 1
    if (await store.write([{ type: 'put', key: count, value: next }], [{ key: count, value }])) return
  }
}
