// How fast deliveries are forwarded.
import { load, Target } from './load.js'
import { type Benchmark, type Figures, measure, pair, percentile, Relay, type Row } from './rig.js'

const ROUNDS = 7
/** Of each concurrency about a second and a half. */
const BACKLOG: Readonly<Record<string, number>> = { 1: 1_000, 8: 3_000 }
const COUNT = 300
const PACED = { perSecond: 200, connections: 4 }
/** What arrives once a tunnel or a code host is back. */
const BURST = 2_000
const SHORT = 50

export const forward: Benchmark = {
  about: `
Pushes of 7,678 bytes, forwarded to an HTTP server that answers at once. Latency: from sending a delivery to
its arrival at the target, at ${PACED.perSecond} deliveries per second and concurrency 1. Rate: from the
moment the target releases a backlog until the last delivery has arrived. Burst: from the first of ${BURST} deliveries that 32
connections post until the last one has arrived at the target, at concurrency 1. ${ROUNDS} rounds.`,

  async run({ rounds, size }, scope) {
    const atMost = (count: number): number => (size === 'short' ? Math.min(SHORT, count) : count)
    const target = await Target.start(scope)
    const rows: Row[] = []
    for (const [concurrency, backlog] of Object.entries(BACKLOG)) {
      const flags = ['--forward', target.url, '--concurrency', concurrency]
      const relays = await pair((build) => new Relay(scope, build).serve(...flags))
      if (concurrency === '1')
        rows.push(
          ...(await measure(rounds(ROUNDS), relays, ({ url }) => latency(url, target, atMost(COUNT)))),
          ...(await measure(rounds(ROUNDS), relays, ({ url }) => burst(url, target, atMost(BURST)))),
        )
      const drained = async ({ url }: Relay): Promise<Figures> => ({
        [`forwarded at concurrency ${concurrency}, deliveries/s`]: await drain(url, target, atMost(backlog)),
      })
      rows.push(...(await measure(rounds(ROUNDS), relays, drained)))
    }
    return rows
  },
}

async function latency(url: string, target: Target, count: number): Promise<Figures> {
  const sent = new Map<string, number>()
  target.arrivals.clear()
  await load(url, { ...PACED, count, onSend: (id) => sent.set(id, performance.now()) })
  await target.received(count)
  const times = [...target.arrivals].map(([id, at]) => at - (sent.get(id) ?? Number.NaN))
  return { 'latency, p50 ms': percentile(times, 0.5), 'latency, p99 ms': percentile(times, 0.99) }
}

async function burst(url: string, target: Target, count: number): Promise<Figures> {
  target.arrivals.clear()
  const begun = performance.now()
  await load(url, { count })
  await target.received(count)
  return { 'burst, s': (Math.max(...target.arrivals.values()) - begun) / 1000 }
}

async function drain(url: string, target: Target, backlog: number): Promise<number> {
  target.arrivals.clear()
  const release = target.hold()
  await load(url, { count: backlog })
  const released = performance.now()
  release()
  await target.received(backlog)
  return (backlog / (Math.max(...target.arrivals.values()) - released)) * 1000
}
