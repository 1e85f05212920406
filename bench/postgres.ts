import { Disposal } from '../src/base/disposal.js'
import { PASSWORD, type PostgresServer, startPostgres } from '../test/helpers/postgres.js'
import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { limitProcessor } from './rig/processor-share.js'
import { PUSH, SECRET } from './rig/push.js'
import { requireCheck } from './rig/require-check.js'
import { compare, notMeasured, type Row } from './rig/row.js'
import { type Env, type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import type { Rate } from './rig/wrk.js'

const ROUNDS = 9
const SECONDS = 2
/** Of one processor, for each relay: two of them leave most of two processors to the database and what sends. */
const SHARE = 0.3
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const postgres: Benchmark = {
  about: `One relay on PostgreSQL, on this machine and with its default settings, and one on SQLite: GitHub's example of a push,
${thousands(PUSH.length)} bytes, over 32 connections, answered when it is on disk. Both share the processor with what sends, and the first
with its database. Then two relays of one service and a single one, each limited to ${SHARE * 100} % of a processor and sent to over 32
connections of its own. ${ROUNDS} rounds of ${SECONDS} s.`,
  needs: ['wrk'],
  async run() {
    await using server = await startPostgres()
    const env = { ...ENV, ...sharedEnvironment(server) }
    return [...(await oneAndSqlite(env)), ...(await twoAndOne(env))]
  },
}

function sharedEnvironment({ store }: PostgresServer): Env {
  const key = store.secrets.keys?.current.reveal() ?? ''
  return { RELAY_STORE: String(store), RELAY_TOKEN_KEY: key, PGPASSWORD: PASSWORD }
}

async function oneAndSqlite(env: Env): Promise<readonly Row[]> {
  await using relay = await startRelay(env)
  await using embedded = await startRelay(ENV)
  for (const each of [relay, embedded]) await requireCheck(each)
  const rates = await inTurn(ROUNDS, { relay: () => load(relay), embedded: () => load(embedded) })
  const values = (of: (rate: Rate) => number) => ({
    relay: rates.relay.map(of),
    other: rates.embedded.map(of),
  })
  const baseline = 'relay on SQLite'
  return [
    compare({ what: 'deliveries', baseline, ...values(({ perSecond }) => perSecond), unit: '/s' }),
    compare({ what: 'latency, p99', baseline, ...values(({ p99 }) => p99), unit: ' ms' }),
  ]
}

/** The single relay has a profile of its own in the same database. */
async function twoAndOne(shared: Env): Promise<readonly Row[]> {
  const env = { ...shared, RELAY_PROFILE: 'two' }
  await using one = await startRelay(env)
  await using other = await startRelay(env)
  await using single = await startRelay({ ...shared, RELAY_PROFILE: 'one' })
  const [what, baseline] = ['deliveries, two limited relays', 'one limited relay']
  await using limits = new Disposal()
  try {
    for (const { pid } of [one, other, single]) limits.use(limitProcessor(pid, SHARE))
  } catch (error) {
    return [notMeasured(what, baseline, String(error))]
  }
  const rates = await inTurn(ROUNDS, {
    two: async () => {
      const both = await Promise.all([load(one), load(other)])
      return both.reduce((sum, { perSecond }) => sum + perSecond, 0)
    },
    one: async () => (await load(single)).perSecond,
  })
  return [compare({ what, baseline, relay: rates.two, other: rates.one, unit: '/s' })]
}

async function load({ url }: Server): Promise<Rate> {
  return post({ url, body: PUSH, seconds: SECONDS })
}
