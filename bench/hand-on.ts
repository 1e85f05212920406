import { ask } from './rig/ask.js'
import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { PUSH, SECRET } from './rig/push.js'
import { atLeast, atMost, compare } from './rig/row.js'
import { type Server, startProgram, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const ROUNDS = 11
const CONCURRENCY = 8
const BACKLOG = 3_000
const PACED = { count: 500, perSecond: 200 }
/** A backlog of 7 KB each, round after round, is not to be swept away. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const handOn: Benchmark = {
  about: `Deliveries of ${thousands(PUSH.length)} bytes handed on to an HTTP server on this machine that answers at once, ${CONCURRENCY} at a time,
beside an undici client that posts the same bodies, as many at a time, and stores nothing. ${ROUNDS} rounds. Rate: from the moment
the target lets a backlog of ${thousands(BACKLOG)} go until the last has come. Latency: at ${PACED.perSecond} deliveries a second, from sending to arriving at
the target, through relay and without it.`,
  needs: [],
  async run() {
    await using target = await startProgram('target', {})
    await using client = await startProgram('client', {})
    const forward = ['--forward', `${target.url}/webhook`, '--concurrency', `${CONCURRENCY}`]
    await using relay = await startRelay(ENV, ['--quiet', ...forward])
    const rates = await inTurn(ROUNDS, {
      relay: () =>
        drain(target, () => ask(client, 'post', { to: relay.url, count: BACKLOG, concurrency: 32 })),
      bare: () => drain(target, () => void posting(client, target)),
    })
    const latencies = await inTurn(ROUNDS, {
      relay: () => latency(target, client, relay.url),
      bare: () => latency(target, client, target.url),
    })
    return [
      compare({
        what: 'deliveries handed on',
        beside: 'undici client',
        relay: rates.relay,
        other: rates.bare,
        unit: '/s',
        target: atLeast(0.6),
      }),
      compare({
        what: `latency at ${PACED.perSecond}/s, p50`,
        beside: 'undici client',
        relay: latencies.relay,
        other: latencies.bare,
        unit: ' ms',
        figure: 'difference',
        target: atMost(5),
      }),
    ]
  },
}

/** Deliveries a second, once the target lets go of the first; `supply` resolves when the sender needs no more time for others. */
async function drain(target: Server, supply: () => unknown): Promise<number> {
  await ask(target, 'hold')
  const supplied = supply()
  await ask(target, 'held', { count: CONCURRENCY })
  await supplied
  const released = await ask(target, 'release')
  const last = await ask(target, 'received', { count: BACKLOG })
  return (BACKLOG / (last.at - released.at)) * 1000
}

async function posting(client: Server, target: Server): Promise<void> {
  await ask(client, 'post', { to: target.url, count: BACKLOG, concurrency: CONCURRENCY })
}

async function latency(target: Server, client: Server, to: string): Promise<number> {
  await ask(target, 'reset')
  await ask(client, 'paced', { to, ...PACED })
  return (await ask(target, 'received', { count: PACED.count })).p50
}
