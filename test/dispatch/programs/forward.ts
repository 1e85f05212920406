// Receives deliveries, forwards them to the given addresses, and prints the number of each that is durable. With a count of 0 it
// forwards what waits, and prints when nothing is left.
import { silentLog } from '../../../src/base/log.js'
import { createDispatcher } from '../../../src/dispatch/dispatcher.js'
import { parseForward } from '../../../src/dispatch/route.js'
import { routesFor } from '../../../src/dispatch/routing.js'
import { openJournal } from '../../../src/journal/open.js'
import { openDatabase } from '../../../src/store/open.js'
import { createIntake } from '../../../src/webhook/intake.js'
import { GITHUB, githubDelivery, SECRETS } from '../../helpers/delivery.js'
import { heard, say } from '../../store/programs/talk.js'
import { countOf } from '../../helpers/journal.js'

const [, , folder = '', count = '0', ...urls] = process.argv
const routes = urls.map(parseForward)
await using database = await openDatabase({ kind: 'file', folder })
const targetsOf = (delivery: Parameters<typeof routesFor>[2]): string[] =>
  routesFor(routes, [], delivery).map(({ id }) => id)
const journal = openJournal(database.sql, { targetsOf })
await using dispatcher = createDispatcher({ journal, routes, concurrency: 1, env: {}, log: silentLog })
const onDelivery = (_: unknown, { n, targets }: { n: number; targets: readonly string[] }): void =>
  dispatcher.take(n, targets)
const intake = createIntake({ provider: GITHUB, secrets: SECRETS, journal, onDelivery })
await dispatcher.start()
say({ started: true })

const first = await countOf(journal)
let next = first
const take = async (): Promise<void> => {
  while (next < first + Number(count)) {
    const body = JSON.stringify({ i: next++, noise: 'x'.repeat((next * 37) % 5000) })
    const { n } = await intake.receive(githubDelivery({ body }))
    say({ n })
  }
}
await Promise.all(Array.from({ length: 8 }, take))
if (count === '0') {
  await dispatcher.idle()
  say({ idle: true })
  await heard()
}
process.stdin.destroy()
