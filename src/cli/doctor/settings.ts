import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import type { Context } from '../context.js'
import { nearest } from '../nearest.js'
import { OPTION_NAMES, OPTIONS, type OptionRow } from '../options.js'
import { readDotenv } from '../settings/environment.js'
import { checkSecretsPlace, readOptions, type Flags, type Reading } from '../settings/read.js'
import { ok, wrong, type Verdict } from './finding.js'

/** Read by relay, though no setting. */
const OTHERS = ['RELAY_DEBUG']

/** Whether the settings can be read, and nothing was meant for relay that it does not read. */
export function checkSettings(
  context: Context,
  flags: Flags,
  log: Log,
): { readonly verdict: Verdict; readonly reading?: Reading } {
  try {
    const reading = readOptions(context, flags, log)
    return { reading, verdict: verdictOf(reading, context) }
  } catch (error) {
    return { verdict: complaint(error) }
  }
}

function verdictOf({ origins }: Reading, { env, cwd }: Context): Verdict {
  const typo = Object.keys({ ...readDotenv(cwd), ...env }).find(isTypo)
  if (typo !== undefined) return wrong(`${typo} is not read`, `set ${nearest(typo, KNOWN)} instead`)
  try {
    checkSecretsPlace(origins)
  } catch (error) {
    return complaint(error)
  }
  const set = Object.keys(origins).length
  return ok(set === 0 ? 'all at their defaults' : `${set} set, the others at their defaults`)
}

const KNOWN: readonly string[] = [
  ...OPTION_NAMES.flatMap((name) => {
    const { env, secret }: OptionRow<unknown> = OPTIONS[name]
    return secret ? [env, `${env}_FILE`] : [env]
  }),
  ...OTHERS,
]

function isTypo(name: string): boolean {
  return name.startsWith('RELAY_') && !KNOWN.includes(name) && nearest(name, KNOWN) !== undefined
}

function complaint(error: unknown): Verdict {
  if (error instanceof RelayError) return wrong(error.message, 'relay config --help')
  throw error
}
