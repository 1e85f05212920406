import { RelayError } from '../../../base/errors.js'
import type { Log } from '../../../base/log.js'
import type { Context } from '../../context.js'
import { suggest } from '../../../base/suggest.js'
import { OPTION_NAMES, variablesOf } from '../../settings/options.js'
import { checkSecretsPlace, readOptions, type Flags, type LoadedOptions } from '../../settings/read.js'
import { type CheckResult, fail, ok } from './result.js'

/** Whether the settings can be read, and no variable is a misspelled setting. */
export function checkSettings(
  context: Context,
  flags: Flags,
  log: Log,
): { readonly result: CheckResult; readonly loaded?: LoadedOptions } {
  try {
    const loaded = readOptions(context, flags, log)
    return { loaded, result: checkLoaded(loaded, context) }
  } catch (error) {
    return { result: failure(error) }
  }
}

function checkLoaded({ origins }: LoadedOptions, { env }: Context): CheckResult {
  const typo = Object.keys(env).find(isTypo)
  if (typo !== undefined) return fail(`${typo} is not read`, `set ${suggest(typo, KNOWN)} instead`)
  try {
    checkSecretsPlace(origins)
  } catch (error) {
    return failure(error)
  }
  const set = Object.keys(origins).length
  return ok(set === 0 ? 'all have their defaults' : `${set} set, the others have their defaults`)
}

const KNOWN: readonly string[] = [...OPTION_NAMES.flatMap(variablesOf), 'RELAY_DEBUG']

function isTypo(name: string): boolean {
  return name.startsWith('RELAY_') && !KNOWN.includes(name) && suggest(name, KNOWN) !== undefined
}

function failure(error: unknown): CheckResult {
  if (error instanceof RelayError) return fail(error.message, 'relay config --help')
  throw error
}
