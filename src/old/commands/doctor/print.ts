import { dim, green, red } from '../../output/line.js'
import type { Output } from '../../output/output.js'
import type { NamedResult } from './result.js'

const MARKS = { ok: green('ok'), fail: red('x '), skip: dim('- ') } as const

/** Prints results of checks for a person. */
export function printChecks(checks: readonly NamedResult[], output: Output): void {
  const width = Math.max(...checks.map(({ check }) => check.length))
  for (const { check, state, text, fix } of checks) {
    output.result([MARKS[state], `  ${check.padEnd(width)}  ${text}`], width + 6)
    if (fix !== undefined) output.result(`${' '.repeat(width + 6)}fix: ${fix}`, width + 11)
  }
}
