import { expect, it } from 'vitest'
import { haproxy } from '../kit/haproxy.js'
import { describeWith } from '../kit/needs.js'
import { closedPort } from '../kit/ports.js'
import { ownServer } from '../kit/postgres.js'
import { receiver } from '../kit/receiver.js'
import { REPEAT } from '../kit/repeat.js'
import { type Fleet, fleet, type Injury, outcome, senders } from '../kit/service.js'

const RELAYS = 3
const KINDS: readonly Injury[] = ['killed', 'stopped', 'ended']
const ROUNDS = KINDS.length * REPEAT
/** For how long a relay stands still, in milliseconds: beyond the takeover. */
const STANDSTILL = REPEAT > 1 ? 20_000 : 7000
/** Milliseconds that a round may take on a busy machine. */
const ROUND_LIMIT = 120_000
/** What is under way, and up to 16 whose answers are being recorded. */
const UNRECORDED = (concurrency: number): number => concurrency + 16

/** How many attempts each relay has made, as it prints them. */
function attempts({ relays }: Fleet): readonly number[] {
  return relays.map(({ program }) => program.out.split('"type":"attempt"').length - 1)
}

/** Which relay has made the most attempts since then: the one that forwards. */
function forwarder(relays: Fleet, before: readonly number[]): number {
  const made = attempts(relays).map((count, i) => count - (before[i] ?? 0))
  return made.indexOf(Math.max(...made))
}

describeWith(['postgres', 'haproxy'], 'three relays behind a load balancer, under 16 senders', () => {
  // One at a time shows the order; several, how much is repeated then.
  it.each(REPEAT > 1 ? [1, 4] : [1])(
    'lose nothing and store nothing twice while one after the other is injured and the database restarts: concurrency %i',
    async (concurrency) => {
      await using shared = await ownServer()
      await using one = await receiver()
      await using other = await receiver()
      const routes = [one, other].flatMap(({ url }) => ['--forward', url])
      const flags = [...routes, '--concurrency', String(concurrency)]
      const ports: number[] = []
      while (ports.length < RELAYS) ports.push(await closedPort())
      await using relays = await fleet(shared, { size: RELAYS, flags, ports, standstill: STANDSTILL })
      await using balancer = await haproxy({ ports })
      await using load = senders({ count: 16, url: () => balancer.url, pause: 200 })
      await load.more(50)
      const rounds: string[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const before = attempts(relays)
        await load.more(50)
        // First the one whose work another has to take over, each time; then any.
        const relay = round < KINDS.length ? forwarder(relays, before) : Math.floor(Math.random() * RELAYS)
        const injury = KINDS[round % KINDS.length] ?? 'killed'
        rounds.push(`${injury} ${relay}`)
        await relays.injure(relay, injury)
        await load.more(50)
        if (round !== KINDS.length - 1) continue
        await shared.stop()
        await shared.start()
        rounds.push('database')
        await load.more(50)
      }
      await load.stop()
      const { lost, twice, targets } = await outcome(shared, load.acknowledged, [one, other])
      const summary = {
        acknowledged: load.acknowledged.size,
        statuses: [...load.statuses],
        repeats: targets.map(({ repeats }) => repeats),
      }
      process.stderr.write(`concurrency ${concurrency}, ${rounds.join(', ')}: ${JSON.stringify(summary)}\n`)
      expect({ rounds, lost, twice, missing: targets.map(({ missing }) => missing) }).toEqual({
        rounds,
        lost: [],
        twice: [],
        missing: [[], []],
      })
      for (const { disordered, repeats } of targets) {
        expect(concurrency > 1 ? [] : disordered).toEqual([])
        // What was sent when a relay was injured, and its record was not made.
        expect(repeats).toBeLessThanOrEqual((ROUNDS + 1) * UNRECORDED(concurrency))
      }
    },
    ROUNDS * ROUND_LIMIT + ROUND_LIMIT,
  )
})
