import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import type { Context } from '../context.js'
import { OPTION_NAMES, OPTIONS, type OptionName, type OptionRow, type OptionValues } from '../options.js'
import { bareBaseUrlSource, given, readDotenv, variableSource, type Place } from './environment.js'
import { readSettingsFile, type SettingsFile } from './file.js'
import type { Given, Origin, Origins, Source } from './origin.js'
import { findProjectFile } from './project.js'

/** Flags as commander gives them: by option name, as text. */
export type Flags = Partial<Record<OptionName, string | readonly string[]>> & {
  /** Names the profile, unless a flag or the environment does. */
  readonly sandbox?: boolean
}

export interface Reading {
  readonly options: OptionValues
  readonly origins: Origins
}

/**
 * Reads every setting: flag, else environment, else `.env` in the working folder, else the project's relay.json, else
 * the user's config.json (what it says for the profile first).
 * @throws RelayError `settings` that names the place, the setting, and what it must be; never the value of a secret.
 */
export function readOptions(context: Context, flags: Flags, log: Log): Reading {
  const found = findValues(context, flags, log)
  const options: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const [name, { value, origin }] of found) {
    options[name] = value
    origins[name] = origin
  }
  return { options, origins }
}

function findValues(context: Context, flags: Flags, log: Log): Map<OptionName, Given> {
  const own = ownSources(context, flags, log)
  const projectFile = findProjectFile(context.cwd)
  const project = projectFile === undefined ? undefined : readSettingsFile(projectFile, 'project')
  const user = readSettingsFile(userFile(context), 'user')
  const profile = firstOf([...own, ...commonOf(project), ...commonOf(user)], 'profile')?.value
  const ofProfile = user?.profile(typeof profile === 'string' ? profile : 'default')
  const sources = [...own, ...commonOf(project), ...(ofProfile ? [ofProfile] : []), ...commonOf(user)]
  const found = new Map<OptionName, Given>()
  for (const name of OPTION_NAMES) {
    const value = firstOf(sources, name)
    if (value) found.set(name, value)
  }
  return found
}

/** Where the user keeps settings for every folder. */
export function userFile({ configFolder }: Context): string {
  return path.join(configFolder, 'config.json')
}

/** What is said for this one start, most particular first. */
function ownSources({ env, cwd }: Context, flags: Flags, log: Log): Source[] {
  const environment: Place = { variables: env, kind: 'environment', cwd }
  const dotenv: Place = { variables: readDotenv(cwd), kind: 'dotenv', cwd }
  return [
    flagSource(flags),
    variableSource(environment),
    variableSource(dotenv),
    bareBaseUrlSource(environment, log),
    bareBaseUrlSource(dotenv, log),
    flags.sandbox ? sandboxProfile : () => undefined,
  ]
}

function flagSource(flags: Flags): Source {
  return (name) => {
    const { flag, env, parse }: OptionRow<unknown> = OPTIONS[name]
    const text = flags[name]
    const origin = { kind: 'flag', text: flag?.split(' ')[0] ?? env } as const
    return text === undefined ? undefined : given([text].flat().join('\n'), origin, parse)
  }
}

/** Files do not name it: the sandbox starts by forgetting the tokens of its profile. */
const sandboxProfile: Source = (name) =>
  name === 'profile' ? { value: 'sandbox', origin: { kind: 'flag', text: '--sandbox' } } : undefined

function commonOf(file: SettingsFile | undefined): Source[] {
  return file ? [file.common] : []
}

function firstOf(sources: readonly Source[], name: OptionName): Given | undefined {
  for (const source of sources) {
    const found = source(name)
    if (found) return found
  }
  return undefined
}

/**
 * A client secret that the user keeps for everything is not sent where a checkout says: whoever wrote its relay.json or
 * `.env` would be given it at the next sign-in.
 * @throws RelayError `settings` saying how to allow it.
 */
export function checkSecretsPlace({ clientSecret, providerUrl }: Origins): void {
  const inFolder = ({ kind }: Origin): boolean => kind === 'project' || kind === 'dotenv'
  if (!clientSecret || !providerUrl || !inFolder(providerUrl) || inFolder(clientSecret)) return
  throw new RelayError(
    'settings',
    `${clientSecret.text} is not sent to an address that this folder names (${providerUrl.text}): say it yourself with --provider-url or RELAY_PROVIDER_URL, or keep the secret in .env here`,
  )
}
