// npm run bench [-- <name> …]: each benchmark beside what it is compared with, in one run, as ratios.
import { ingest } from './ingest.js'
import { journal } from './journal.js'

const BENCHMARKS = { ingest, journal }

const names = process.argv.slice(2)
for (const [name, run] of Object.entries(BENCHMARKS)) {
  if (names.length === 0 || names.includes(name)) await run((line) => void process.stdout.write(`${line}\n`))
}
