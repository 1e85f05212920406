import { existsSync, readFileSync } from 'node:fs'
import type { Benchmark } from './benchmark.js'
import { machine } from './machine.js'
import type { Row } from './row.js'
import { table } from './table.js'

export interface Result {
  readonly name: string
  readonly benchmark: Benchmark
  readonly rows: readonly Row[]
}

/** The text of bench/RESULTS.md, with the notes on a benchmark's figures from bench/notes/<name>.md. */
export function resultsText(results: readonly Result[], { full }: { readonly full: boolean }): string {
  const facts = Object.entries({ Date: new Date().toISOString().slice(0, 10), ...machine() })
  return [
    '# Measured speed',
    readFileSync('bench/notes/method.md', 'utf8').trim(),
    `Written by \`npm run bench${full ? ' -- --full' : ''}\`.`,
    facts.map(([name, value]) => `- ${name}: ${value}`).join('\n'),
    ...results.map(section),
    '',
  ].join('\n\n')
}

/** The section of one benchmark, which is also printed. */
export function section({ name, benchmark, rows }: Result): string {
  const notes = `bench/notes/${name}.md`
  return [
    `## ${name}`,
    benchmark.about,
    table(rows),
    ...(existsSync(notes) ? [readFileSync(notes, 'utf8').trim()] : []),
  ].join('\n\n')
}
