import type { Context } from '../context.js'
import { createOutput, type Output, type OutputOptions } from '../output/output.js'
import { checkSecretsPlace, type Flags, type LoadedOptions, readOptions } from './read.js'

/** The flags that every command takes. */
export type CommonFlags = Flags & OutputOptions & { readonly json?: boolean }

/** The output and the settings of a command. */
export interface Prepared extends LoadedOptions {
  readonly output: Output
}

/**
 * Creates the output and reads the settings. Called once, since it can print warnings.
 * @throws RelayError `settings`
 */
export function prepare(context: Context, flags: CommonFlags): Prepared {
  const output = createOutput(context, flags)
  const loaded = readOptions(context, flags, output.log)
  if (!flags.sandbox) checkSecretsPlace(loaded.origins)
  return { output, ...loaded }
}
