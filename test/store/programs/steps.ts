// Makes one change of each kind, and says on stdout, in one system call, when it was told that the change is durable.
import { openDatabase } from '../../../src/store/open.js'
import { say } from './talk.js'

const [, , folder = ''] = process.argv
const database = await openDatabase({ kind: 'file', folder })
const { store } = database
const table = database.table<number, Uint8Array>('rows', { keys: 'number', values: 'bytes' })

say('ready')
await store.put('a', 1)
say('put')
await store.putIfAbsent('b', 1)
say('putIfAbsent')
await store.take('a')
say('take')
await store.delete('b')
say('delete')
await store.write([{ type: 'put', key: 'c', value: 1 }])
say('write')
await store.write([{ type: 'put', key: 'c', value: 2 }], [{ key: 'c', value: 1 }])
say('write as expected')
await database.commit([table.put(1, Buffer.of(1))])
say('commit')
await database[Symbol.asyncDispose]()
