import { readFileSync } from 'node:fs'
import type { Benchmark } from './rig/benchmark.js'
import { post } from './rig/load.js'
import { SECRET, SMALL_PUSH } from './rig/push.js'
import { atMost, compare } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const FEW = 10_000
const MANY = { usual: 100_000, full: 1_000_000 }
const ROUNDS = 3
/** Nothing is swept away while it is measured. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const memory: Benchmark = {
  about: `Anonymous memory (RssAnon) of the service after ${thousands(MANY.full)} deliveries of 1 KB, ${thousands(MANY.usual)} without --full, over 32 connections,
beside its own after ${thousands(FEW)}. ${ROUNDS} services one after the other. Resident memory would count the pages of the journal's file too.`,
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
    const [what, beside] = [`memory after ${thousands(count)}`, `after ${thousands(FEW)}`]
    return [compare({ ...sides, what, beside, unit: ' MiB', target: atMost(1.3) })]
  },
}

/** At least so many; how many they were. */
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
