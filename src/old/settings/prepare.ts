import type { Context } from '../context.js'
import { createOutput, type Output, type OutputOptions } from '../output/output.js'
import { OPTIONS } from './options.js'
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
  return { output, ...load(context, flags, output) }
}

/** The same for a service, whose messages can be JSON. Where only a file says so, warnings about the settings are still text. */
export function prepareService(context: Context, flags: CommonFlags): Prepared {
  const outputFor = (format: unknown): Output =>
    createOutput(context, { ...flags, jsonLog: format === 'json' })
  const early = flags.logFormat ?? context.env[OPTIONS.logFormat.env]
  const loaded = load(context, flags, outputFor(early))
  return { output: outputFor(loaded.options.logFormat), ...loaded }
}

function load(context: Context, flags: CommonFlags, { log }: Output): LoadedOptions {
  const loaded = readOptions(context, flags, log)
  if (!flags.sandbox) checkSecretsPlace(loaded.origins)
  return loaded
}
