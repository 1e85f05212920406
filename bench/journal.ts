import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { openJournal } from '../src/journal/open.js'
import { openDatabase } from '../src/store/open.js'
import { post } from './load.js'
import { startServer } from './server.js'
import { median } from './statistics.js'

const run = promisify(execFile)

const SECRET = 'bench'
const SIZES = { few: 1_000, many: 100_000 } as const
const ROUNDS = 9
const DELIVERIES = 2_000
const BODY = Buffer.from(JSON.stringify({ ref: 'refs/heads/main', commits: 'x'.repeat(1000) }))

/** What a long journal costs: intake, `relay log --last 20`, `relay show last`, and memory, beside a short one's. */
export async function journal(print: (line: string) => void): Promise<void> {
  const few = await fill(SIZES.few)
  const many = await fill(SIZES.many)
  await using atFew = await serve(few)
  await using atMany = await serve(many)
  const intake = { few: [] as number[], many: [] as number[] }
  const log = { few: [] as number[], many: [] as number[] }
  const show = { few: [] as number[], many: [] as number[] }
  const memory = { few: [] as number[], many: [] as number[] }
  for (let round = -1; round < ROUNDS; round++) {
    for (const [size, home, server] of [
      ['few', few, atFew],
      ['many', many, atMany],
    ] as const) {
      const load = { url: server.url, secret: SECRET, body: BODY, requests: DELIVERIES, connections: 32 }
      const rate = (await post(load)).perSecond
      const logged = await timed(home, ['log', '--last', '20'])
      const shown = await timed(home, ['show', 'last'])
      if (round < 0) continue // the first round warms everything up
      intake[size].push(rate)
      log[size].push(logged)
      show[size].push(shown)
      memory[size].push(anonymous(server.pid))
    }
  }
  const ratio = (values: { few: number[]; many: number[] }): string =>
    median(values.many.map((value, round) => value / (values.few[round] ?? Number.NaN))).toFixed(2)
  print(`a journal of ${SIZES.many} entries beside one of ${SIZES.few}, ${ROUNDS} rounds, medians of ratios`)
  print(
    `  intake rate: ${ratio(intake)} (${median(intake.many).toFixed(0)}/s beside ${median(intake.few).toFixed(0)}/s)`,
  )
  print(
    `  time of relay log --last 20: ${ratio(log)} (${median(log.many).toFixed(0)} ms beside ${median(log.few).toFixed(0)} ms)`,
  )
  print(
    `  time of relay show last: ${ratio(show)} (${median(show.many).toFixed(0)} ms beside ${median(show.few).toFixed(0)} ms)`,
  )
  print(
    `  anonymous memory of serve: ${ratio(memory)} (${median(memory.many).toFixed(0)} MiB beside ${median(memory.few).toFixed(0)} MiB)`,
  )
}

/** A data folder whose journal has so many entries of 1 KB. */
async function fill(count: number): Promise<string> {
  const home = mkdtempSync(path.join(tmpdir(), 'relay-bench-'))
  await using database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  const journal = openJournal(database)
  const receivedAt = Date.now()
  for (let n = 0; n < count; n += 500) {
    const batch = Array.from({ length: 500 }, (_, i) =>
      journal.append({
        receivedAt,
        provider: 'github',
        event: 'push',
        deliveryId: `filled-${n + i}`,
        hookId: '',
        headers: [['Content-Type', 'application/json']],
        body: BODY,
        verifiedBy: 'current',
        action: null,
        repo: 'octo/demo',
        number: null,
      }),
    )
    await Promise.all(batch)
  }
  return home
}

function serve(home: string): ReturnType<typeof startServer> {
  const env = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_HOME: home, RELAY_KEEP_MAX: '1TiB' }
  return startServer(['dist/bin/relay.js', 'serve', '--port', '0', '--json', '--quiet'], env)
}

/** Wall time in milliseconds. */
async function timed(home: string, args: readonly string[]): Promise<number> {
  const started = performance.now()
  await run(process.execPath, ['dist/bin/relay.js', ...args], {
    env: { PATH: process.env['PATH'], RELAY_HOME: home },
  })
  return performance.now() - started
}

/** MiB. */
function anonymous(pid: number): number {
  const [, kib = '0'] = /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
