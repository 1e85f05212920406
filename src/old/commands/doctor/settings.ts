import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { attach, type Attached } from '../../session/attach.js'
import { meantSetting } from '../../settings/meant.js'
import { OPTION_NAMES, variablesOf } from '../../settings/options.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { checkSecretsPlace, type LoadedOptions } from '../../settings/read.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/**
 * Whether the settings can be read, and no variable is a misspelled setting.
 * @throws RelayError `usage`, `unavailable` as {@link attach}: there is no one profile to diagnose.
 */
export async function checkSettings(
  context: Context,
  flags: CommonFlags,
): Promise<{ readonly result: CheckResult; readonly attached?: Attached }> {
  try {
    const attached = await attach(context, flags, { tolerant: true })
    return { attached, result: checkLoaded(attached, context) }
  } catch (error) {
    return { result: failure(error) }
  }
}

/** Whether this shell's settings agree with the running instance. */
export function checkShell({ conflicts: [conflict], instance }: Attached): CheckResult {
  if (!instance) return skip('no instance is running')
  if (!conflict) return ok(`agrees with process ${instance.pid}`)
  return fail(conflict.text, `${conflict.fix.toLowerCase()}, or name another profile with --profile`)
}

function checkLoaded({ origins }: LoadedOptions, { env }: Context): CheckResult {
  const typo = Object.keys(env).find(isTypo)
  if (typo !== undefined) return fail(`${typo} is not read`, `set ${meantSetting(typo, KNOWN)} instead`)
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
  return name.startsWith('RELAY_') && !KNOWN.includes(name) && meantSetting(name, KNOWN) !== undefined
}

function failure(error: unknown): CheckResult {
  if (error instanceof RelayError && error.kind === 'settings')
    return fail(error.message, 'relay config --help')
  throw error
}
