// Fills a small disk, tries everything there, and goes on once the test has made room. Prints how each call ended.
import { RelayError } from '../../../src/base/errors.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from './talk.js'

const [, , folder = ''] = process.argv
await using database = await openDatabase({ kind: 'file', folder })
const { store } = database
const table = database.table<number, Uint8Array>('rows', { keys: 'number', values: 'bytes' })
const row = (n: number) => table.put(n, Buffer.alloc(50_000, n))
const large = 'x'.repeat(50_000)

await store.put('first', 'kept')
let n = 0
while ((await end(database.commit([row(n)]))) === 'done') n++

const began = Date.now()
const calls = Array.from({ length: 40 }, (_, i) => [
  database.commit([row(1000 + i)]),
  store.put(`put ${i}`, large),
  store.putIfAbsent(`absent ${i}`, large),
  store.write([{ type: 'put', key: `write ${i}`, value: large }], [{ key: 'first', value: 'kept' }]),
])
const ends = await Promise.all(calls.flat().map(end))
say({
  ends: [...new Set(ends)],
  ms: Date.now() - began,
  rows: table.count() - n,
  first: await store.get('first'),
  keys: await store.list(''),
})

await heard()
say({
  ends: await Promise.all([database.commit([row(n)]), store.put('put', large), store.take('first')].map(end)),
})
await heard()

async function end(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'done'
  } catch (error) {
    return error instanceof RelayError ? `${error.kind}: ${error.message}` : String(error)
  }
}
process.stdin.destroy()
