import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { dim, green, red } from '../../output/line.js'
import { createOutput, type Output } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { diagnose } from './diagnose.js'
import type { NamedResult } from './result.js'
import type { SalvageFlags } from './salvage.js'

type DoctorFlags = CommonFlags & Partial<SalvageFlags>

/** Runs `relay doctor`. */
export async function runDoctor(context: Context, flags: DoctorFlags): Promise<void> {
  const { salvage, out } = flags
  if (salvage !== undefined) return (await import('./salvage.js')).runSalvage(context, { ...flags, salvage })
  if (out !== undefined) throw new RelayError('usage', '--out goes with --salvage')
  const output = createOutput(context, flags)
  const nodeVersion = process.versions.node
  const checks = await diagnose(context, flags, { nodeVersion })
  const failed = checks.filter(({ state }) => state === 'fail').length
  if (flags.json) output.object({ ok: failed === 0, checks })
  else print(checks, output)
  if (failed > 0) throw new RelayError('unhealthy', `${failed} of ${checks.length} checks failed`)
}

const MARKS = { ok: green('ok'), fail: red('x '), skip: dim('- ') } as const

function print(checks: readonly NamedResult[], output: Output): void {
  const width = Math.max(...checks.map(({ check }) => check.length))
  for (const { check, state, text, fix } of checks) {
    output.result([MARKS[state], `  ${check.padEnd(width)}  ${text}`], width + 6)
    if (fix !== undefined) output.result(`${' '.repeat(width + 6)}fix: ${fix}`, width + 11)
  }
}
