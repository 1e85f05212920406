// Holds the lock on writing until it is killed, as a process that was stopped in the middle of a write would.
import path from 'node:path'
import { open } from 'lmdb'
import { say } from './talk.js'

const [, , folder = ''] = process.argv
open(path.join(folder, 'relay.mdb'), { noSubdir: true, overlappingSync: false }).transactionSync(() => {
  say('held')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
