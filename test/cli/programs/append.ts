// Writes to a journal what it is told, a line of JSON each, and says when it is done: a delivery, of which what is
// particular is given, or an attempt.
import { createInterface } from 'node:readline'
import { Journal } from '../../../src/journal/journal.js'
import { openDatabase } from '../../../src/store/open.js'
import { delivery } from '../../journal/rig.js'
import { say } from '../../store/programs/talk.js'

const [, , folder = '', ...targets] = process.argv
const database = await openDatabase({ kind: 'file', folder })
const journal = new Journal(database.sql, { targetsOf: () => targets })
say('ready')
for await (const line of createInterface(process.stdin)) {
  const { id, payload = {}, attempt, forward, n, ...more } = JSON.parse(line)
  if (attempt) {
    await journal.record(n, { ...attempt, answer: Buffer.from(attempt.answer) }, forward)
    say({ n })
  } else {
    const headers = [['Content-Type', 'application/json']] as const
    const body = Buffer.from(JSON.stringify(payload))
    say(await journal.append(delivery(id, { receivedAt: Date.now(), headers, body, ...more })))
  }
}
