import { readFileSync } from 'node:fs'
import type { Benchmark } from './rig/benchmark.js'
import { post } from './rig/load.js'
import { SECRET, SMALL_PUSH } from './rig/push.js'
import { compare } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const FEW = 10_000
const MANY = { usual: 100_000, full: 1_000_000 }
const ROUNDS = 3
/** Retention removes nothing during the measurement. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const memory: Benchmark = {
  about: `Anonymous memory (RssAnon) of the service after ${thousands(MANY.full)} deliveries of 1 KB, ${thousands(MANY.usual)} without --full, over 32 connections,
compared with its own after ${thousands(FEW)}. ${ROUNDS} services in turn. Resident memory would also count the pages of the journal's file.`,
  needs: ['wrk'],
  async run({ full }) {
    const count = full ? MANY.full : MANY.usual
    const sides: { relay: number[]; other: number[] } = { relay: [], other: [] }
    for (let round = 0; round < ROUNDS; round++) {
      await using server = await startRelay(ENV)
      const before = await deliver(server, FEW)
      sides.other.push(anonymous(server))
      await deliver(server, count - before)
      sides.relay.push(anonymous(server))
    }
    const [what, baseline] = [`memory after ${thousands(count)}`, `after ${thousands(FEW)}`]
    return [compare({ ...sides, what, baseline, unit: ' MiB' })]
  },
}

/** Delivers at least `count`, and returns how many it was. */
async function deliver({ url }: Server, count: number): Promise<number> {
  let sent = 0
  while (sent < count) sent += (await post({ url, body: SMALL_PUSH, seconds: 1 })).requests
  return sent
}

/** MiB. */
function anonymous({ pid }: Server): number {
  const [, kib = '0'] = /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
