import { cpSync } from 'node:fs'
import path from 'node:path'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { emptyFolder } from '../../helpers/context.js'
import { attempt, delivery, failed, NOW, succeeded } from '../../journal/rig.js'
import { randomNumbers } from './damage.js'

const EVENTS = ['push', 'issues', 'pull_request', 'release']
const TARGET = 'http://localhost/'

export interface Profiles {
  /** The folder as a crash leaves it: with the log. */
  readonly crashed: string
  readonly closed: string
}

/** Two copies of a profile's folder. Deliveries have their numbers as ids, and bodies of up to 20 KB. */
export async function makeJournal(count: number): Promise<Profiles> {
  const folder = emptyFolder()
  const crashed = path.join(emptyFolder(), 'profile')
  const random = randomNumbers(7)
  // In a thread, whose end closes the database for good.
  await using database = await openDatabase({ kind: 'file', folder, thread: true })
  const journal = openJournal(database.sql, { targetsOf: () => [TARGET] })
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  await Promise.all(
    numbers.map(async (n) => {
      const body = Buffer.alloc(random(8) === 0 ? random(20_000) : random(3000), `${n} `)
      const event = EVENTS[n % EVENTS.length] ?? ''
      await journal.append(delivery(String(n), { event, body, receivedAt: NOW + n, repo: `octo/${n % 7}` }))
    }),
  )
  const finished = numbers.filter((n) => n % 20 !== 0)
  await Promise.all(
    finished.map(async (n) => {
      const forward = n % 50 === 1 ? failed : succeeded
      await journal.record(
        n,
        attempt(TARGET, { at: NOW + n, outcome: forward === failed ? 'refused' : 'succeeded' }),
        forward,
      )
    }),
  )
  cpSync(folder, crashed, { recursive: true })
  return { crashed, closed: folder }
}
