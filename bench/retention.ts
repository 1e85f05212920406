import { statSync } from 'node:fs'
import path from 'node:path'
import type { Benchmark } from './rig/benchmark.js'
import { type Folder, temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { compare } from './rig/row.js'
import { type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const ROUNDS = 13
const SECONDS = 2
const KEEP_MAX_MIB = 64
const MIB = 1_048_576
/** Until the journal is full, and retention removes as much as arrives. */
const FILL_SECONDS = 6

export const retention: Benchmark = {
  about: `What retention takes from intake. A relay with --keep-max ${KEEP_MAX_MIB}MiB, full, so that it removes an old delivery for each
new one, compared with one that removes nothing. Pushes of ${thousands(PUSH.length)} bytes over 32 connections, ${ROUNDS} rounds of
${SECONDS} s. Size: the largest that the database's file was meanwhile, compared with --keep-max.`,
  needs: ['wrk'],
  async run() {
    using home = temporaryFolder()
    await using limited = await startRelay(env(home, `${KEEP_MAX_MIB}MiB`))
    using unlimitedHome = temporaryFolder()
    await using unlimited = await startRelay(env(unlimitedHome, '1TiB'))
    const load =
      ({ url }: Server, seconds = SECONDS) =>
      async () =>
        (await post({ url, body: PUSH, seconds })).perSecond
    await load(limited, FILL_SECONDS)()
    await load(unlimited, FILL_SECONDS)()
    const sizes: number[] = []
    const timer = setInterval(() => sizes.push(fileSize(home)), 50)
    const rates = await inTurn(ROUNDS, { limited: load(limited), unlimited: load(unlimited) })
    clearInterval(timer)
    return [
      compare({
        what: 'deliveries',
        relay: rates.limited,
        other: rates.unlimited,
        unit: '/s',
        baseline: 'without retention',
      }),
      compare({
        what: 'file size',
        relay: [Math.max(...sizes) / MIB],
        other: [KEEP_MAX_MIB],
        unit: ' MiB',
        baseline: '--keep-max',
      }),
    ]
  },
}

const fileSize = (home: Folder): number => statSync(path.join(home.path, 'default', 'relay.db')).size

const env = (home: Folder, keepMax: string): Record<string, string> => ({
  RELAY_WEBHOOK_SECRET: SECRET,
  RELAY_HOME: home.path,
  RELAY_KEEP_MAX: keepMax,
})
