// Opens the database over and over, reads from it, and closes it, as commands do that only look, until it is told to stop.
import { setImmediate } from 'node:timers/promises'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from './talk.js'

const [, , folder = ''] = process.argv
const stop = heard().then(() => true)
let opens = 0

say('ready')
while (!(await Promise.race([stop, setImmediate(false)]))) {
  await using database = await openDatabase({ kind: 'file', folder })
  await database.store.get('first')
  opens++
}
say(opens)
process.stdin.destroy()
