import type { Stats } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import type { OptionSpec } from './option-spec.js'
import { OPTION_NAMES, OPTIONS, isOptionName, type OptionName, specOf } from './options.js'
import { readSecretFile } from './environment.js'
import { isObject } from '../../json/parse.js'
import { readJsonObject } from './json.js'
import { didYouMeanSetting } from './meant.js'
import type { Given, Origin, Source } from './origin.js'
import { checkThisMachine } from './project.js'

/** A project's file, whose author can be anyone, or the user's own. */
type Kind = 'project' | 'user'

interface Section {
  readonly kind: Kind
  readonly file: string
  /** Where in the file, for messages: '' or `profiles.work.`. */
  readonly prefix: string
  readonly values: Readonly<Record<string, unknown>>
}

/** A settings file whose keys and values were all checked. `profile` gives the settings of one profile. */
export interface SettingsFile {
  readonly file: string
  readonly common: Source
  readonly profile: (name: string) => Source
  /** The profiles that it has a section for. */
  readonly profiles: readonly string[]
}

/** The file with the user's own settings. */
export function userFile({ configFolder }: Pick<Context, 'configFolder'>): string {
  return path.join(configFolder, 'config.json')
}

/**
 * Reads and checks a whole settings file; undefined when there is none. `accept` checks the open file.
 * @throws RelayError `settings` that names the file, the key, and the closest valid key or what the value must be.
 */
export function readSettingsFile(
  file: string,
  kind: Kind,
  accept?: (opened: Stats) => void,
): SettingsFile | undefined {
  const values = readJsonObject(file, accept)
  if (!values) return undefined
  const { profiles = {}, ...common } = values
  if (kind === 'project' && 'profiles' in values)
    throw wrong(file, 'profiles', 'can only be set in your own config.json')
  if (!isObject(profiles)) throw wrong(file, 'profiles', 'must be an object of profiles')
  const sections = new Map(
    Object.entries(profiles).map(([name, section]) => [name, readProfile(file, name, section)] as const),
  )
  return {
    file,
    common: readSection({ kind, file, prefix: '', values: common }),
    profile: (name) => sections.get(name) ?? (() => undefined),
    profiles: [...sections.keys()],
  }
}

function readProfile(file: string, name: string, values: unknown): Source {
  const prefix = `profiles.${name}`
  if (!isObject(values)) throw wrong(file, prefix, 'must be an object of settings')
  for (const key of ['profile', 'home'])
    if (key in values) throw wrong(file, `${prefix}.${key}`, 'cannot be set for one profile')
  return readSection({ kind: 'user', file, prefix: `${prefix}.`, values })
}

function readSection(section: Section): Source {
  const found = new Map(Object.entries(section.values).map(([key, value]) => readEntry(section, key, value)))
  return (name) => found.get(name)
}

function readEntry(section: Section, key: string, value: unknown): [OptionName, Given] {
  const { kind, file, prefix } = section
  const fail = (why: string): RelayError => wrong(file, prefix + key, why)
  const name = optionNamed(key)
  if (name === undefined) throw fail(`is not a setting${didYouMeanSetting(key, keysOf(kind))}`)
  const spec = specOf(name)
  if (kind === 'project' && !spec.project) throw fail(notForProjects(spec))
  if (spec.secret && key === name) throw fail(`is a secret: name a file that holds it as ${name}File`)
  const origin: Origin = { kind, text: `${prefix}${key} in ${file}` }
  try {
    const parsed = parseValue(value, spec, (text) => resolveFile(text, spec, origin, file))
    if (kind === 'project') checkThisMachine(parsed, spec)
    return [name, { value: parsed, origin }]
  } catch (cause) {
    if (cause instanceof RelayError) throw cause
    throw fail(cause instanceof Error ? cause.message : 'invalid value')
  }
}

/** Numbers and lists can be JSON numbers and arrays. */
function parseValue(value: unknown, spec: OptionSpec, resolve: (text: string) => string): unknown {
  const text = Array.isArray(value)
    ? value.join(spec.list ? '\n' : ',')
    : typeof value === 'number'
      ? String(value)
      : value
  if (typeof text !== 'string') throw new Error('must be a text, a number, or a list of texts')
  if (text === '') throw new Error('must not be empty: leave it out instead')
  const parsed = spec.parse(resolve(text))
  const fits =
    typeof value === 'string' || (Array.isArray(value) ? Array.isArray(parsed) : typeof parsed === 'number')
  if (!fits) throw new Error('must be a text')
  return parsed
}

/** Reads a secret from its file. File names are relative to the settings file, or to the user's home (`~/`). */
function resolveFile(text: string, spec: OptionSpec, origin: Origin, file: string): string {
  if (!spec.secret && spec !== OPTIONS.home) return text
  const full = path.resolve(path.dirname(file), text.replace(/^~(?=\/|$)/, homedir()))
  return spec.secret ? readSecretFile(full, origin) : full
}

/** The setting of a key; a secret's key names the file that holds it. */
function optionNamed(key: string): OptionName | undefined {
  if (isOptionName(key)) return key
  const name = key.replace(/File$/, '')
  return isOptionName(name) && 'secret' in OPTIONS[name] ? name : undefined
}

/** The keys that a file of that kind may have. */
export function keysOf(kind: Kind): string[] {
  if (kind === 'project') return OPTION_NAMES.filter((name) => specOf(name).project)
  return ['profiles', ...OPTION_NAMES.map((name) => (specOf(name).secret ? `${name}File` : name))]
}

function notForProjects({ env, flag, secret }: OptionSpec): string {
  const ways = [flag?.split(' ')[0], env, secret && `${env}_FILE`].filter(Boolean).join(' or ')
  return `cannot be set by a project: set it with ${ways}`
}

function wrong(file: string, key: string, why: string): RelayError {
  return new RelayError('settings', `${file}: ${key} ${why}`)
}
