// Reads the journal over and over, in one turn and in many, until it is told to stop. Prints what it saw.
import { setImmediate } from 'node:timers/promises'
import type { Entry } from '../../../src/journal/delivery.js'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { heard, say } from '../../store/programs/talk.js'
import { bodyOf } from '../rig.js'

const [, , folder = ''] = process.argv
await using database = await openDatabase({ kind: 'file', folder })
const journal = openJournal(database)
const stop = heard().then(() => true)
const seen = { passes: 0, entries: 0, attempts: 0, wrong: [] as number[] }

say('ready')
while (!(await Promise.race([stop, setImmediate(false)]))) {
  for (const entry of journal.entries()) look(entry)
  for (const entry of journal.entries({ reverse: true })) {
    look(entry)
    if (entry.n % 7 === 0) await setImmediate()
  }
  for (const { n, size, deliveryId } of journal.summaries()) {
    if (size !== bodyOf(deliveryId).length) seen.wrong.push(n)
  }
  seen.passes++
}
say(seen)
process.stdin.destroy()

function look({ n, deliveryId, body }: Entry): void {
  seen.entries++
  seen.attempts += journal.attempts(n).length
  if (!bodyOf(deliveryId).equals(body)) seen.wrong.push(n)
}
