import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { compare, type Row } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'

const ROUNDS = 13
const SECONDS = 2
/** As often as a Prometheus server ever asks. Milliseconds. */
const SCRAPE_MS = 1000
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const metrics: Benchmark = {
  about: `Intake of a push with --metrics, read once a second, compared with a relay without, over 32 connections. ${ROUNDS} rounds of
${SECONDS} s.`,
  needs: ['wrk'],
  async run() {
    await using measured = await startRelay({ ...ENV, RELAY_METRICS: 'on' })
    await using plain = await startRelay(ENV)
    const load = ({ url }: Server) => post({ url, body: PUSH, seconds: SECONDS })
    const rates = await inTurn(ROUNDS, {
      async with() {
        const timer = setInterval(() => void scrape(measured), SCRAPE_MS)
        await scrape(measured)
        const rate = await load(measured)
        clearInterval(timer)
        return rate
      },
      without: () => load(plain),
    })
    const row = (what: string, of: (rate: (typeof rates.with)[number]) => number, unit: '/s' | ' ms'): Row =>
      compare({ what, baseline: 'without', relay: rates.with.map(of), other: rates.without.map(of), unit })
    return [
      row('deliveries, --metrics read every second', ({ perSecond }) => perSecond, '/s'),
      row('latency, p99', ({ p99 }) => p99, ' ms'),
    ]
  },
}

async function scrape({ url }: Server): Promise<void> {
  const response = await fetch(`${url}/metrics`)
  await response.text()
  if (response.status !== 200) throw new Error(`/metrics was answered ${response.status}`)
}
