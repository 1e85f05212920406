import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Benchmark } from './rig/benchmark.js'
import { inTurn } from './rig/in-turn.js'
import { post } from './rig/load.js'
import { LARGE_PUSH, SECRET } from './rig/push.js'
import { requireCheck } from './rig/require-check.js'
import { compare } from './rig/row.js'
import { startProgram, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const run = promisify(execFile)

const ROUNDS = 7
const SECONDS = 3
const MIB = 1_048_576
/** Retention removes nothing of the gigabytes that arrive. */
const ENV = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB' }

export const ingestLarge: Benchmark = {
  about: `The same with a push of ${thousands(LARGE_PUSH.length)} bytes, as many commits as 1 MiB holds. ${ROUNDS} rounds of ${SECONDS} s. The rate of
OpenSSL's SHA-256 on one core shows the share of the signature.`,
  needs: ['wrk', 'openssl'],
  async run() {
    await using relay = await startRelay(ENV)
    await using bare = await startProgram('bare', ENV)
    for (const server of [relay, bare]) await requireCheck(server)
    const load = (url: string) => async () =>
      (await post({ url, body: LARGE_PUSH, seconds: SECONDS })).perSecond
    const rates = await inTurn(ROUNDS, { relay: load(relay.url), bare: load(bare.url), openssl: sha256Rate })
    const bytes = rates.relay.map((perSecond) => (perSecond * LARGE_PUSH.length) / MIB)
    const row = { what: 'deliveries of 1 MiB', relay: rates.relay, other: rates.bare, unit: '/s' } as const
    return [
      compare({ ...row, baseline: 'bare node:http' }),
      compare({
        what: 'bytes received',
        baseline: 'openssl speed, SHA-256',
        relay: bytes,
        other: rates.openssl,
        unit: ' MiB/s',
      }),
    ]
  },
}

/** MiB per second. */
async function sha256Rate(): Promise<number> {
  const { stdout } = await run('openssl', ['speed', '-evp', 'sha256', '-bytes', `${MIB}`, '-seconds', '1'])
  const [, thousands = ''] = /sha256\s+([\d.]+)k/i.exec(stdout) ?? []
  return (Number(thousands) * 1000) / MIB
}
