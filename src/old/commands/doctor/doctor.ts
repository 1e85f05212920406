import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { diagnose } from './diagnose.js'
import { printChecks } from './print.js'

/** Runs `relay doctor`. */
export async function runDoctor(context: Context, flags: CommonFlags): Promise<void> {
  const output = createOutput(context, flags)
  const nodeVersion = process.versions.node
  const checks = await diagnose(context, flags, { nodeVersion })
  const failed = checks.filter(({ state }) => state === 'fail').length
  if (flags.json) output.object({ ok: failed === 0, checks })
  else printChecks(checks, output)
  if (failed > 0) throw new RelayError('unhealthy', `${failed} of ${checks.length} checks failed`)
}
