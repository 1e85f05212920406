// Makes one change of each kind, and says on stdout, in one system call, when it was told that the change is durable.
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { attempt, delivery, succeeded } from '../../journal/rig.js'
import { say } from './talk.js'

const [, , folder = '', where = 'here'] = process.argv
const database = await openDatabase({ kind: 'file', folder, thread: where === 'thread' })
const { store } = database
const journal = openJournal(database.sql, { targetsOf: () => ['a'] })

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
await journal.append(delivery('1'))
say('append')
await journal.record(1, attempt('a'), succeeded)
say('record')
await database[Symbol.asyncDispose]()
