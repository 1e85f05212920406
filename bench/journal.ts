import type { Benchmark } from './rig/benchmark.js'
import { filled } from './rig/filled.js'
import type { Folder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { SECRET, SMALL_PUSH } from './rig/push.js'
import { compare, type Comparison, type Row } from './rig/row.js'
import { RELAY, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'
import { wallTime } from './rig/wall-time.js'

const FEW = 1_000
const MANY = { usual: 100_000, full: 1_000_000 }
const ROUNDS = 11
const SECONDS = 2

export const journal: Benchmark = {
  about: `The cost of a long journal: one of ${thousands(MANY.full)} entries of 1 KB, ${thousands(MANY.usual)} without --full, compared with one of ${thousands(FEW)},
which is created again for each round, since it grows. Deliveries of 1 KB over 32 connections, ${ROUNDS} rounds: the service
starts, warms up for 1 s, and is measured for ${SECONDS} s.`,
  needs: ['wrk'],
  async run({ full }) {
    const count = full ? MANY.full : MANY.usual
    using few = await filled(FEW)
    using many = await filled(count)
    const row = (what: string, times: Sides, unit: Comparison['unit']): Row =>
      compare({
        what,
        relay: times.many,
        other: times.few,
        unit,
        baseline: `${thousands(FEW)} entries`,
      })
    const run =
      (home: Folder, ...args: readonly string[]) =>
      async () =>
        wallTime({ command: process.execPath, args: [RELAY, ...args], env: env(home) })
    const log = ['log', '--last', '20']
    const show = ['show', 'last']
    const logged = await inTurn(ROUNDS, { few: run(few, ...log), many: run(many, ...log) })
    const shown = await inTurn(ROUNDS, { few: run(few, ...show), many: run(many, ...show) })
    const intake = { few: intakeOfNew, many: () => intakeOf(many) }
    return [
      row(`deliveries, ${thousands(count)} entries`, await inTurn(ROUNDS, intake), '/s'),
      row('relay log --last 20', logged, ' ms'),
      row('relay show last', shown, ' ms'),
    ]
  },
}

async function intakeOfNew(): Promise<number> {
  using home = await filled(FEW)
  return await intakeOf(home)
}

/** Deliveries a second. */
async function intakeOf(home: Folder): Promise<number> {
  await using server = await startRelay(env(home))
  const load = { url: server.url, body: SMALL_PUSH }
  await post({ ...load, seconds: 1 })
  return (await post({ ...load, seconds: SECONDS })).perSecond
}

interface Sides {
  readonly few: readonly number[]
  readonly many: readonly number[]
}

function env(home: Folder): Record<string, string> {
  // Retention removes nothing during the measurement.
  return { RELAY_WEBHOOK_SECRET: SECRET, RELAY_HOME: home.path, RELAY_KEEP_MAX: '1TiB' }
}
