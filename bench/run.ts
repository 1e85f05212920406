// npm run bench [-- <name> …] [--full]: each benchmark beside what it is compared with, in one run.
import { parseArgs } from 'node:util'
import { ingest } from './ingest.js'
import type { Benchmark, BenchmarkOptions } from './rig/benchmark.js'
import { lacking } from './rig/installed.js'
import { notMeasured, type Row } from './rig/row.js'
import { table } from './rig/table.js'
import { journal } from './journal.js'
import { startUp } from './start-up.js'

const BENCHMARKS: Readonly<Record<string, Benchmark>> = { ingest, journal, 'start-up': startUp }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false } },
})
const unknown = positionals.filter((name) => !Object.hasOwn(BENCHMARKS, name))
if (unknown.length > 0)
  throw new Error(`no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHMARKS).join(', ')}`)

for (const [name, benchmark] of Object.entries(BENCHMARKS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue
  process.stdout.write(`\n## ${name}\n\n${benchmark.about}\n\n`)
  process.stdout.write(table(await measure(benchmark, values)))
}

async function measure(benchmark: Benchmark, options: BenchmarkOptions): Promise<readonly Row[]> {
  const lack = lacking(...benchmark.needs)
  return lack === undefined ? benchmark.run(options) : [notMeasured('all of it', '', lack)]
}
