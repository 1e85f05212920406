import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { diagnose } from './diagnose.js'
import { printChecks } from './print.js'
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
  else printChecks(checks, output)
  if (failed > 0) throw new RelayError('unhealthy', `${failed} of ${checks.length} checks failed`)
}
