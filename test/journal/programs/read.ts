// Reads the journal over and over until it is told to stop. Prints what it saw.
import { setImmediate } from 'node:timers/promises'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from '../../store/programs/talk.js'
import { bodyOf } from '../rig.js'

const [, , folder = ''] = process.argv
await using database = await openDatabase({ kind: 'file', folder })
const journal = openJournal(database.sql)
const seen = { passes: 0, entries: 0, attempts: 0, wrong: [] as number[] }
const stop = heard().then(() => true)

say('ready')
while (!(await Promise.race([stop, setImmediate(false)]))) {
  for await (const { n, size, deliveryId } of journal.select()) {
    if (size !== bodyOf(deliveryId).length) seen.wrong.push(n)
    if (n % 7 !== 0) continue
    await setImmediate()
    const entry = await journal.read(n)
    seen.entries++
    seen.attempts += (await journal.attempts(n)).length
    if (entry && !bodyOf(deliveryId).equals(entry.body)) seen.wrong.push(n)
  }
  seen.passes++
}
say(seen)
process.stdin.destroy()
