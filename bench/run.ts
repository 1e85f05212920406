// npm run bench [-- <name> …] [--full]: each benchmark and its baseline, in one run.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { action } from './action.js'
import { bearer } from './bearer.js'
import { comment } from './comment.js'
import { forward } from './forward.js'
import { ingest } from './ingest.js'
import { ingestLarge } from './ingest-large.js'
import { inspect } from './inspect.js'
import { journal } from './journal.js'
import { memory } from './memory.js'
import { metrics } from './metrics.js'
import { postgres } from './postgres.js'
import { replay } from './replay.js'
import { retention } from './retention.js'
import type { Benchmark, BenchmarkOptions } from './rig/benchmark.js'
import { lacking } from './rig/installed.js'
import { type Result, resultsText, section } from './rig/results.js'
import { notMeasured, type Row } from './rig/row.js'
import { startUp } from './start-up.js'

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  ingest,
  'ingest-large': ingestLarge,
  postgres,
  journal,
  retention,
  inspect,
  metrics,
  memory,
  forward,
  action,
  bearer,
  'start-up': startUp,
  comment,
  replay,
}

await main()

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { full: { type: 'boolean', default: false } },
  })
  const unknown = positionals.filter((name) => !Object.hasOwn(BENCHMARKS, name))
  if (unknown.length > 0)
    throw new Error(`no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}`)
  const results: Result[] = []
  for (const [name, benchmark] of Object.entries(BENCHMARKS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    const result = { name, benchmark, rows: await measure(benchmark, values) }
    results.push(result)
    process.stdout.write(`${section(result)}\n\n`)
  }
  // A partial run would mix results of different days and builds.
  if (positionals.length === 0) writeFileSync('bench/RESULTS.md', resultsText(results, values))
}

async function measure(benchmark: Benchmark, options: BenchmarkOptions): Promise<readonly Row[]> {
  const lack = lacking(...benchmark.needs)
  return lack === undefined ? benchmark.run(options) : [notMeasured('all of it', '', lack)]
}
