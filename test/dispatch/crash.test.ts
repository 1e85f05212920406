import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { startTarget, type TargetServer, valuesOf } from '../helpers/target.js'
import { type Started, start } from '../store/programs/start.js'
import { entriesOf, waitingOf } from '../helpers/journal.js'

/** More with RELAY_CRASH_ROUNDS. */
const ROUNDS = Number(process.env['RELAY_CRASH_ROUNDS'] ?? 5)
/** In each round, unless the end comes before. */
const DELIVERIES = 400

/** Notes the numbers that the program says are durable, until it says no more. */
async function listen(program: Started, told: Set<number>): Promise<void> {
  for (;;) {
    const line = await program.line().catch(() => undefined)
    if (line === undefined) return
    const { n }: { n?: number } = JSON.parse(line)
    if (n !== undefined) told.add(n)
  }
}

const bodiesOf = ({ received }: TargetServer): string[] => received.map(({ body }) => body.toString())

describe('forwarding, killed under load and started again', () => {
  it('brings every delivery to every target at least once, in order, byte for byte', async () => {
    const folder = emptyFolder()
    await using one = await startTarget()
    await using other = await startTarget()
    const targets = [one, other]
    const urls = targets.map(({ url }) => url)
    const told = new Set<number>()
    for (let round = 1; round <= ROUNDS; round++) {
      await using program = start('dispatch/programs/forward', [folder, String(DELIVERIES), ...urls])
      await program.line()
      const listening = listen(program, told)
      await sleep(50 + Math.random() * 400)
      await program.kill()
      await listening
    }
    await using last = start('dispatch/programs/forward', [folder, '0', ...urls])
    await last.line()
    expect(JSON.parse(await last.line())).toEqual({ idle: true })
    await last.kill()

    await using database = await openDatabase({ kind: 'file', folder })
    const entries = await entriesOf(openJournal(database.sql))
    const stored = entries.map(({ body }) => Buffer.from(body).toString())
    const firsts = targets.map((target) => [...new Set(bodiesOf(target))])
    const repeats = targets.map((target, i) => target.received.length - (firsts[i]?.length ?? 0))
    const lost = firsts.map((bodies) => stored.filter((body) => !bodies.includes(body)).length)
    process.stderr.write(
      `${ROUNDS} rounds: ${entries.length} deliveries, ${lost.join('+')} lost, ${repeats.join('+')} handed on again\n`,
    )
    expect([...told].filter((n) => n > entries.length)).toEqual([])
    expect(firsts).toEqual([stored, stored])
    // Only the attempt in flight at a crash is made again.
    expect(Math.max(...repeats)).toBeLessThanOrEqual(ROUNDS)
    for (const { received } of targets) {
      const ids = received.map((handed) => valuesOf(handed, 'x-github-delivery')[0])
      expect([...new Set(ids)]).toEqual(entries.map(({ deliveryId }) => deliveryId))
    }
    expect(await waitingOf(openJournal(database.sql))).toEqual([])
  }, 60_000)
})
