// Holds the lock on writing until it is killed, as a process that was stopped in the middle of a write would.
import { holdLock } from '../hold.js'
import { heard, say } from './talk.js'

const [, , folder = ''] = process.argv
// Referenced until the end: a connection that was collected holds nothing.
using _lock = holdLock(folder)
say('held')
await heard()
