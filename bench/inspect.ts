import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Benchmark } from './rig/benchmark.js'
import { filled } from './rig/filled.js'
import { type Folder, temporaryFolder } from './rig/folder.js'
import { inTurn } from './rig/in-turn.js'
import { openInspector } from './rig/inspector.js'
import { post } from './rig/load.js'
import { PUSH, SECRET } from './rig/push.js'
import { compare, notMeasured, type Row } from './rig/row.js'
import { RELAY, type Server, startRelay } from './rig/server.js'
import { thousands } from './rig/thousands.js'

const FEW = 1_000
const MANY = { usual: 100_000, full: 1_000_000 }
const SEARCHED = 100_000
const OPEN = 5
const ROUNDS = 7
const STARTS = 25
const SECONDS = 2

export const inspect: Benchmark = {
  about: `The inspector. Intake of a push with ${OPEN} open inspectors, compared with none, over 32 connections, ${ROUNDS} rounds of ${SECONDS} s.
The benchmark makes their requests itself, as their pages do, but draws nothing: it measures relay, not browsers.
The first page of the list and the next one, from the request to the whole answer, in a journal of ${thousands(MANY.full)} entries,
${thousands(MANY.usual)} without --full, compared with one of ${thousands(FEW)}. A search for text that is nowhere, which ends at its limit
of 1.5 s, in ${thousands(SEARCHED)} pushes of ${thousands(PUSH.length)} bytes. With the inspector never opened: time until the service
listens, and anonymous memory then, compared with --no-inspect, and with the built program of an earlier relay, which RELAY_EARLIER
names.`,
  needs: ['wrk'],
  async run({ full }) {
    return [
      ...(await intake()),
      ...(await lists(full ? MANY.full : MANY.usual)),
      await search(),
      ...(await unopened()),
    ]
  },
}

const env = (home: Folder): Record<string, string> => ({
  RELAY_WEBHOOK_SECRET: SECRET,
  RELAY_HOME: home.path,
  RELAY_KEEP_MAX: '1TiB',
})

async function intake(): Promise<readonly Row[]> {
  using watchedHome = temporaryFolder()
  using plainHome = temporaryFolder()
  await using watched = await startRelay(env(watchedHome))
  await using plain = await startRelay(env(plainHome))
  const load = ({ url }: Server) => post({ url, body: PUSH, seconds: SECONDS })
  const inspector = await openInspector(watchedHome.path)
  const rates = await inTurn(ROUNDS, {
    async open() {
      const streams = await Promise.all(Array.from({ length: OPEN }, () => inspector.follow()))
      const rate = await load(watched)
      for (const stream of streams) stream[Symbol.dispose]()
      return rate
    },
    none: () => load(plain),
  })
  const row = (what: string, of: (rate: (typeof rates.open)[number]) => number, unit: '/s' | ' ms'): Row =>
    compare({ what, baseline: 'none open', relay: rates.open.map(of), other: rates.none.map(of), unit })
  return [
    row(`deliveries, ${OPEN} inspectors open`, ({ perSecond }) => perSecond, '/s'),
    row('latency, p99', ({ p99 }) => p99, ' ms'),
  ]
}

async function lists(count: number): Promise<readonly Row[]> {
  using few = await filled(FEW)
  using many = await filled(count)
  await using fewServer = await startRelay(env(few))
  await using manyServer = await startRelay(env(many))
  void [fewServer, manyServer]
  const pages = { few: await openInspector(few.path), many: await openInspector(many.path) }
  const read = (path: string) =>
    inTurn(ROUNDS * 3, { few: () => pages.few.read(path), many: () => pages.many.read(path) })
  const row = async (what: string, path: string): Promise<Row> => {
    const times = await read(path)
    const baseline = `${thousands(FEW)} entries`
    return compare({ what, baseline, relay: times.many, other: times.few, unit: ' ms' })
  }
  return [
    await row(`first page of ${thousands(count)}`, 'deliveries'),
    await row('next page', `deliveries?before=${FEW - 50}`),
    await row('one repository', 'deliveries?repo=octo%2Fdemo'),
    await row('timeline', 'timeline'),
    await row('state', 'state'),
  ]
}

async function search(): Promise<Row> {
  using home = await filled(SEARCHED, PUSH)
  await using server = await startRelay(env(home))
  void server
  const inspector = await openInspector(home.path)
  const times = await inTurn(3, {
    search: () => inspector.read('deliveries?text=nowhere-at-all'),
    page: () => inspector.read('deliveries'),
  })
  return compare({
    what: `search of ${thousands(SEARCHED)}`,
    baseline: 'first page',
    relay: times.search,
    other: times.page,
    unit: ' ms',
  })
}

async function unopened(): Promise<readonly Row[]> {
  const earlier = process.env['RELAY_EARLIER']
  const measured = await inTurn(STARTS, {
    relay: () => started(RELAY),
    off: () => started(RELAY, '--no-inspect'),
    earlier: earlier ? () => started(earlier) : undefined,
  })
  const rows = (baseline: string, others: readonly Started[]): readonly Row[] => {
    const row = (what: string, of: (each: Started) => number, unit: ' ms' | ' MiB'): Row =>
      compare({ what, baseline, relay: measured.relay.map(of), other: others.map(of), unit })
    return [row('start of serve', ({ ms }) => ms, ' ms'), row('memory of serve', ({ mib }) => mib, ' MiB')]
  }
  return [
    ...rows('--no-inspect', measured.off),
    ...(earlier
      ? rows('the earlier relay', measured.earlier)
      : [notMeasured('never opened', 'the earlier relay', 'RELAY_EARLIER is not set')]),
  ]
}

interface Started {
  /** Milliseconds until it listens. */
  readonly ms: number
  /** Anonymous memory then. */
  readonly mib: number
}

async function started(program: string, ...flags: readonly string[]): Promise<Started> {
  using home = temporaryFolder()
  const begun = performance.now()
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', '--json', ...flags], {
    env: { PATH: process.env['PATH'], HOME: home.path, ...env(home) },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'close')
  await once(child.stdout, 'data')
  const ms = performance.now() - begun
  const [, kib = '0'] = /^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
  child.kill('SIGTERM')
  await ended
  return { ms, mib: Number(kib) / 1024 }
}
