import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { packageVersion } from '../../version.js'

/** Runs `relay version`. */
export async function runVersion(context: Context, flags: CommonFlags): Promise<void> {
  const output = createOutput(context, flags)
  if (flags.json) output.object({ version: packageVersion(), node: process.version })
  else output.result(packageVersion())
}
