import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { requireCheck } from './rig/require-check.js'
import { compare, notMeasured, type Row } from './rig/row.js'
import { type Server, startEarlierRelay, startProgram, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import type { Rate } from './rig/wrk.js'

const ROUNDS = 13
const SECONDS = 2
/** Round after round is more than a journal may hold by default; what it costs to remove the oldest is not what is measured. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const ingest: Benchmark = {
  about: `GitHub's example of a push, ${thousands(PUSH.length)} bytes, signed, with an id of its own each time, over 32 connections.
All verify and parse it, and answer when it is on disk. The file server appends each batch to a file with one flush, which is
the limit for a durable server; @octokit/webhooks with an insert into SQLite for each delivery (WAL, synchronous=FULL) is
what one would write by hand. RELAY_EARLIER names the built program of an earlier relay to compare with.
${ROUNDS} rounds of ${SECONDS} s. Retention removes nothing meanwhile.`,
  needs: ['wrk'],
  async run() {
    await using relay = await startRelay(ENV)
    await using file = await startProgram('append-file', ENV)
    await using octokit = await startProgram('octokit-sqlite', ENV)
    await using earlier = await startEarlierRelay(ENV)
    for (const server of [relay, file, octokit, earlier]) if (server) await requireCheck(server)
    const load = (server: Server) => () => post({ url: server.url, body: PUSH, seconds: SECONDS })
    const rates = await inTurn(ROUNDS, {
      relay: load(relay),
      file: load(file),
      octokit: load(octokit),
      earlier: earlier && load(earlier),
    })
    return [
      ...rows(rates.relay, rates.file, 'appending to a file'),
      ...rows(rates.relay, rates.octokit, '@octokit/webhooks and SQLite'),
      ...(earlier
        ? rows(rates.relay, rates.earlier, 'the earlier relay')
        : [notMeasured('deliveries', 'the earlier relay', 'RELAY_EARLIER is not set')]),
    ]
  },
}

function rows(relay: readonly Rate[], other: readonly Rate[], baseline: string): Row[] {
  const values = (of: (rate: Rate) => number) => ({ relay: relay.map(of), other: other.map(of) })
  return [
    compare({ what: 'deliveries', baseline, ...values(({ perSecond }) => perSecond), unit: '/s' }),
    compare({ what: 'latency, p99', baseline, ...values(({ p99 }) => p99), unit: ' ms' }),
  ]
}
