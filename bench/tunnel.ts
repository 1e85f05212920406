// What the tunnel takes of a burst, and how the service fares meanwhile.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { smee } from '../test/kit/smee.js'
import { PUSH, signatureOf } from './load.js'
import { type Benchmark, type Figures, measure, pair, Relay, type Row, Scope, until } from './rig.js'

const ROUNDS = 3
const BURSTS = [
  { what: '5,000 of 8 KB', count: 5_000, filling: 0 },
  { what: '60 of 500 KB', count: 60, filling: 500_000 },
]
/** What has not come after this long without another delivery is lost. */
const LOST_MS = 10_000

export const tunnel: Benchmark = {
  about: `
A smee channel sends signed pushes as fast as its connection takes them: how many are taken, the seconds until
the last one is, the slowest answer of /health meanwhile, and the largest memory (RssAnon). ${ROUNDS} rounds,
each with a new data folder.`,

  async run({ rounds, size }) {
    const rows: Row[] = []
    const builds = await pair((build) => build)
    for (const { what, count, filling } of BURSTS) {
      const length = size === 'short' ? count / 20 : count
      const messages = Array.from({ length }, () => message('x'.repeat(filling)))
      rows.push(...(await measure(rounds(ROUNDS), builds, (build) => burst(build, what, messages))))
    }
    return rows
  },
}

async function burst(build: string, what: string, messages: readonly object[]): Promise<Figures> {
  await using scope = new Scope()
  const server = scope.use(await smee())
  const relay = new Relay(scope, build)
  const taken: number[] = []
  const lines = await relay.serveAloud('--tunnel', server.channel)
  lines.on('line', (line) => line.includes('"type":"delivery"') && taken.push(performance.now()))
  await server.stream(0)
  server.message(message(''))
  await until('the first comes', () => taken.length > 0)
  let [slowest, memory] = [0, 0]
  const begun = performance.now()
  for (const each of messages) server.message(each)
  const isWaiting = () => performance.now() - Math.max(begun, taken.at(-1) ?? 0) < LOST_MS
  while (taken.length <= messages.length && isWaiting()) {
    const asked = performance.now()
    await (await fetch(`${relay.url}/health`)).arrayBuffer()
    slowest = Math.max(slowest, performance.now() - asked)
    memory = Math.max(memory, relay.memory)
    await sleep(20)
  }
  return {
    [`${what}, taken`]: taken.length - 1,
    [`${what}, s`]: ((taken.at(-1) ?? Number.NaN) - begun) / 1000,
    [`${what}, slowest /health, ms`]: slowest,
    [`${what}, memory, MiB`]: memory,
  }
}

/** What smee sends of a push: headers and parsed body. Bodies differ, since a copy is a duplicate. */
function message(filling: string): object {
  const body = { nonce: randomUUID(), filling, ...PUSH }
  return {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': signatureOf(JSON.stringify(body)),
    body,
    query: {},
    timestamp: Date.now(),
  }
}
