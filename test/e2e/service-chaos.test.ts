import { expect, it } from 'vitest'
import { Fleet, type Injury, outcomeOf, startSenders } from '../helpers/chaos.js'
import { startHaproxy } from '../helpers/haproxy.js'
import { describeWith } from '../helpers/needs.js'
import { startPostgres } from '../helpers/postgres.js'
import { closedPort } from '../helpers/scripted-server.js'
import { startTarget } from '../helpers/target.js'

/** How often a relay is injured for each number of parallel deliveries; 60 by hand (RELAY_TEST_ROUNDS=60). */
const ROUNDS = Number(process.env['RELAY_TEST_ROUNDS'] ?? 4)
/** For how long a relay stands still: beyond the takeover; 20 s by hand. Milliseconds. */
const STANDSTILL = ROUNDS > 10 ? 20_000 : 8000
const INJURIES: readonly Injury[] = ['killed', 'stopped', 'disconnected']
const RELAYS = 3
/** For each parallel delivery, one is under way and the end of up to four is being recorded; with one, they are sent in order. */
const UNRECORDED = (concurrency: number): number => (concurrency > 1 ? 5 * concurrency : 1)
/** Milliseconds that a round may take on a busy machine. */
const ROUND_LIMIT = 120_000

describeWith(['postgres', 'haproxy'], 'three relays behind a load balancer, under 16 senders', () => {
  it.each([1, 4])(
    'lose nothing and store nothing twice while a random one is injured, again and again: concurrency %i',
    async (concurrency) => {
      await using server = await startPostgres()
      await using target = await startTarget()
      const flags = ['--forward', target.url, '--concurrency', String(concurrency)]
      const ports: number[] = []
      while (ports.length < RELAYS) ports.push(await closedPort())
      await using fleet = await Fleet.start(server, { size: RELAYS, flags, ports, standstill: STANDSTILL })
      await using balancer = await startHaproxy({ ports })
      const senders = startSenders({ count: 16, url: () => balancer.url, pause: 20 })
      await senders.more(50)
      const rounds: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const [relay, injury] = [
          Math.floor(Math.random() * RELAYS),
          INJURIES[round % INJURIES.length] ?? 'killed',
        ]
        rounds.push(`${injury} ${relay}`)
        await fleet.injure(relay, injury)
        await senders.more(50)
      }
      await senders.stop()
      const outcome = await outcomeOf(server, senders.acknowledged, [target])
      const [arrived] = outcome.targets
      const summary = {
        acknowledged: senders.acknowledged.size,
        statuses: [...senders.statuses],
        repeats: arrived?.repeats,
      }
      if (process.env['RELAY_TEST_ROUNDS'])
        process.stderr.write(
          `concurrency ${concurrency}, ${rounds.length} rounds: ${JSON.stringify(summary)}\n`,
        )
      expect({ rounds, lost: outcome.lost, twice: outcome.twice, missing: arrived?.missing }).toEqual({
        rounds,
        lost: [],
        twice: [],
        missing: [],
      })
      expect(concurrency > 1 ? [] : arrived?.disordered).toEqual([])
      // What was sent when a relay was injured, and its record was not made.
      expect(arrived?.repeats).toBeLessThanOrEqual(ROUNDS * UNRECORDED(concurrency))
    },
    ROUNDS * ROUND_LIMIT + ROUND_LIMIT,
  )
})
