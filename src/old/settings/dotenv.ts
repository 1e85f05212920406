import { statSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import type { OptionSpec } from './option-spec.js'
import { OPTION_NAMES, OPTIONS, type OptionName, variablesOf } from './options.js'
import { originOf, variableSource, type Place } from './environment.js'
import { didYouMeanSetting } from './meant.js'
import type { Source, Variables } from './origin.js'
import { checkThisMachine, isTrusted } from './project.js'
import { readSmallFile } from './small-file.js'
import type { Trust } from './trust.js'

export interface DotenvOptions {
  readonly trust: Trust
  readonly log: Log
  /** The user's own settings file, which an error can suggest. */
  readonly userFile: string
}

/**
 * The variables of the working folder's `.env`. It can come with a checkout, so it may set only what `relay.json` may, and
 * secrets. A file of another user is ignored with a warning, as is a folder of that name (Python's). Variables without
 * `RELAY_` belong to other programs.
 * @throws RelayError `settings` naming the file, the variable, and where to set it instead.
 */
export function readDotenv(folder: string, options: DotenvOptions): Variables {
  const file = path.join(folder, '.env')
  const variables = parseEnv(readText(file, options) ?? '')
  for (const [name, text] of Object.entries(variables)) if (text) checkName(name, file, options.userFile)
  return variables
}

/**
 * Settings from the variables of `.env`.
 * @throws RelayError `settings`, from the source, naming the variable.
 */
export function dotenvSource(place: Place): Source {
  const source = variableSource(place)
  return (name) => {
    const found = source(name)
    if (found) checkPlace(name, found.value, place)
    return found
  }
}

function readText(file: string, { trust, log }: DotenvOptions): string | undefined {
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found || found.isDirectory() || !isTrusted(file, trust, log)) return undefined
  } catch (cause) {
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
  return readSmallFile(file, {}, trust.accept(file))
}

function checkName(variable: string, file: string, userFile: string): void {
  if (!variable.startsWith('RELAY_')) return
  const name = optionNamed(variable)
  const { project, secret, flag }: Partial<OptionSpec> = name ? OPTIONS[name] : {}
  if (project ?? secret) return
  const elsewhere = `${variable} cannot be set by a project: set it in the environment`
  const ways = [flag && `with ${flag.split(' ')[0]}`, `as ${name} in ${userFile}`].filter(Boolean)
  if (name) throw wrong(file, [elsewhere, ...ways].join(', or '))
  if (variable === 'RELAY_DEBUG') throw wrong(file, elsewhere)
  throw wrong(file, `${variable} is not a setting${didYouMeanSetting(variable, VARIABLES)}`)
}

function optionNamed(variable: string): OptionName | undefined {
  return OPTION_NAMES.find((name) => variablesOf(name).includes(variable))
}

const VARIABLES = OPTION_NAMES.flatMap(variablesOf)

function checkPlace(name: OptionName, value: unknown, { kind }: Place): void {
  try {
    checkThisMachine(value, OPTIONS[name])
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'invalid value'
    throw new RelayError('settings', `${originOf(OPTIONS[name].env, kind).text}: ${why}`, { cause })
  }
}

function wrong(file: string, why: string): RelayError {
  return new RelayError('settings', `${file}: ${why}`)
}
