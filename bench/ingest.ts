import { post, type Rate } from './load.js'
import { startServer } from './server.js'
import { median } from './statistics.js'

const SECRET = 'bench'
const ROUNDS = 7
const REQUESTS = 4000
const CONNECTIONS = 32

/** Ingest of 7 KB deliveries, answered after the durable write, beside a bare server that stores nothing. */
export async function ingest(print: (line: string) => void): Promise<void> {
  const env = { RELAY_WEBHOOK_SECRET: SECRET }
  await using relay = await startServer(
    ['dist/bin/relay.js', 'serve', '--port', '0', '--json', '--quiet'],
    env,
  )
  await using bare = await startServer(['--import', 'tsx', 'bench/bare.ts'], env)
  const body = Buffer.from(JSON.stringify({ ref: 'refs/heads/main', commits: 'x'.repeat(7000) }))
  const rates: { relay: Rate[]; bare: Rate[] } = { relay: [], bare: [] }
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, { url }] of [
      ['relay', relay],
      ['bare', bare],
    ] as const) {
      const rate = await post({ url, secret: SECRET, body, requests: REQUESTS, connections: CONNECTIONS })
      if (round >= 0) rates[name].push(rate) // the first round warms both up
    }
  }
  const ratios = rates.relay.map(
    ({ perSecond }, round) => perSecond / (rates.bare[round]?.perSecond ?? Number.NaN),
  )
  const both = (of: (rate: Rate) => number): string =>
    `${median(rates.relay.map(of)).toFixed(1)} beside ${median(rates.bare.map(of)).toFixed(1)}`
  print(`ingest, deliveries/s: ${both(({ perSecond }) => perSecond)}; ratio ${median(ratios).toFixed(2)}`)
  print(
    `  spread of the ratio over ${ROUNDS} rounds: ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
  )
  print(`ingest, p99 ms: ${both(({ p99 }) => p99)}`)
}
