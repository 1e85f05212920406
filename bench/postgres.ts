import { PASSWORD, startPostgres } from '../test/helpers/postgres.js'
import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { requireCheck } from './rig/require-check.js'
import { compare } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import type { Rate } from './rig/wrk.js'

const ROUNDS = 9
const SECONDS = 2
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const postgres: Benchmark = {
  about: `One relay on PostgreSQL, on this machine and with its default settings, and one on SQLite: GitHub's example of a push,
${thousands(PUSH.length)} bytes, over 32 connections, answered when it is on disk. Both share the processor with what sends, and the first
with its database. ${ROUNDS} rounds of ${SECONDS} s.`,
  needs: ['wrk'],
  async run() {
    await using server = await startPostgres()
    const key = server.store.secrets.keys?.current.reveal() ?? ''
    const shared = { RELAY_STORE: String(server.store), RELAY_TOKEN_KEY: key, PGPASSWORD: PASSWORD }
    await using relay = await startRelay({ ...ENV, ...shared })
    await using embedded = await startRelay(ENV)
    for (const each of [relay, embedded]) await requireCheck(each)
    const load = (server: Server) => () => post({ url: server.url, body: PUSH, seconds: SECONDS })
    const rates = await inTurn(ROUNDS, { relay: load(relay), embedded: load(embedded) })
    const values = (of: (rate: Rate) => number) => ({
      relay: rates.relay.map(of),
      other: rates.embedded.map(of),
    })
    const baseline = 'relay on SQLite'
    return [
      compare({ what: 'deliveries', baseline, ...values(({ perSecond }) => perSecond), unit: '/s' }),
      compare({ what: 'latency, p99', baseline, ...values(({ p99 }) => p99), unit: ' ms' }),
    ]
  },
}
