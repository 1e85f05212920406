import { ask } from './rig/ask.js'
import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { PUSH, SECRET } from './rig/push.js'
import { compare } from './rig/row.js'
import { type Server, startProgram, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const ROUNDS = 11
const CONCURRENCY = 8
const BACKLOG = 3_000
const PACED = { count: 500, perSecond: 200 }
/** Retention removes nothing of the backlog. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const forward: Benchmark = {
  about: `Deliveries of ${thousands(PUSH.length)} bytes forwarded to an HTTP server on this machine that answers at once, ${CONCURRENCY} in parallel,
compared with an undici client that posts the same bodies in the same way and stores nothing. ${ROUNDS} rounds. Rate: from the
moment the target releases a backlog of ${thousands(BACKLOG)} until the last has arrived. Latency: at ${PACED.perSecond} deliveries per second, from sending to
arriving at the target, through relay and without it.`,
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
        what: 'deliveries forwarded',
        baseline: 'undici client',
        relay: rates.relay,
        other: rates.bare,
        unit: '/s',
      }),
      compare({
        what: `latency at ${PACED.perSecond}/s, p50`,
        baseline: 'undici client',
        relay: latencies.relay,
        other: latencies.bare,
        unit: ' ms',
        figure: 'difference',
      }),
    ]
  },
}

/** Deliveries per second once the target releases the first; `supply` resolves when the sender has sent the backlog. */
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
