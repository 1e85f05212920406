import type { Benchmark } from './rig/benchmark.js'
import { startDebianWebhook } from './rig/debian-webhook.js'
import { inTurn } from './rig/in-turn.js'
import { lacking } from './rig/installed.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { requireCheck } from './rig/require-check.js'
import { atLeast, atMost, compare, type Comparison, notMeasured, type Row } from './rig/row.js'
import { type Server, startProgram, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import type { Rate } from './rig/wrk.js'

const ROUNDS = 13
const SECONDS = 2
/** Round after round is more than a journal may hold by default; what it costs to remove the oldest is not what is measured. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const ingest: Benchmark = {
  about: `GitHub's example of a push, ${thousands(PUSH.length)} bytes, signed, with an id of its own each time, over 32 connections.
relay answers when the delivery is on disk; the others verify and parse, and store nothing. ${ROUNDS} rounds of ${SECONDS} s.
Nothing is removed from the journal meanwhile. Beside the bare server 0.90 would be better still.`,
  needs: ['wrk'],
  async run() {
    await using relay = await startRelay(ENV)
    await using telling = await startRelay(ENV, [])
    await using bare = await startProgram('bare', ENV)
    await using octokit = await startProgram('octokit', ENV)
    const withoutDebian = lacking('webhook')
    await using debian = withoutDebian ? undefined : await startDebianWebhook(SECRET)
    const load = (server: Server, random?: boolean) => () =>
      post({ url: server.url, body: PUSH, seconds: SECONDS, ...(random && { random }) })
    for (const server of [relay, telling, bare, octokit, debian]) if (server) await requireCheck(server)
    return rows(
      await inTurn(ROUNDS, {
        relay: load(relay),
        telling: load(telling),
        random: load(relay, true),
        bare: load(bare),
        octokit: load(octokit),
        debian: debian && load(debian),
      }),
      withoutDebian,
    )
  },
}

type Side = 'relay' | 'telling' | 'random' | 'bare' | 'octokit' | 'debian'

function rows(rates: Readonly<Record<Side, readonly Rate[]>>, withoutDebian: string | undefined): Row[] {
  const perSecond = (side: Side): number[] => rates[side].map((rate) => rate.perSecond)
  const rate = (side: Side): Pick<Comparison, 'what' | 'relay' | 'other' | 'unit'> => ({
    what: 'deliveries',
    relay: perSecond('relay'),
    other: perSecond(side),
    unit: '/s',
  })
  const p99 = (side: Side): number[] => rates[side].map((rate) => rate.p99)
  const webhook = { what: 'deliveries', beside: "Debian's webhook, its command not run" }
  return [
    compare({ ...rate('bare'), beside: 'bare node:http', target: atLeast(0.8) }),
    compare({
      what: 'latency, p99',
      beside: 'bare node:http',
      relay: p99('relay'),
      other: p99('bare'),
      unit: ' ms',
      target: atMost(2),
    }),
    compare({ ...rate('octokit'), beside: "@octokit/webhooks' middleware", target: atLeast(1) }),
    withoutDebian
      ? notMeasured(webhook.what, webhook.beside, withoutDebian)
      : compare({ ...rate('debian'), ...webhook, target: atLeast(1.15) }),
    compare({
      ...rate('telling'),
      what: 'deliveries, --quiet as above',
      beside: 'relay that prints a line for each',
    }),
    compare({ ...rate('random'), what: 'deliveries, ids counted up', beside: 'relay, ids at random' }),
  ]
}
