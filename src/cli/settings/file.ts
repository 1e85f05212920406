import { homedir } from 'node:os'
import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { isLoopback } from '../../base/loopback.js'
import { didYouMean } from '../nearest.js'
import { OPTION_NAMES, OPTIONS, isOptionName, type OptionName, type OptionRow } from '../options.js'
import { readSecretFile } from './environment.js'
import { isObject, readJsonObject } from './json.js'
import type { Given, Origin, Source } from './origin.js'

/** Whose file: a project's, whose author may be anyone, or the user's own. */
type Kind = 'project' | 'user'

interface Section {
  readonly kind: Kind
  readonly file: string
  /** Where in the file, for messages: '' or `profiles.work.`. */
  readonly prefix: string
  readonly values: Readonly<Record<string, unknown>>
}

/** A settings file whose every key is known and every value good. `profile` gives the settings of one profile. */
export interface SettingsFile {
  readonly file: string
  readonly common: Source
  readonly profile: (name: string) => Source
}

/**
 * Reads and checks a whole settings file; undefined when there is none.
 * @throws RelayError `settings` that names file, key and the nearest right one, or what the value must be.
 */
export function readSettingsFile(file: string, kind: Kind): SettingsFile | undefined {
  const values = readJsonObject(file)
  if (!values) return undefined
  const { profiles = {}, ...common } = values
  if (kind === 'project' && 'profiles' in values)
    throw wrong(file, 'profiles', "belongs in your own settings, not in a project's")
  if (!isObject(profiles)) throw wrong(file, 'profiles', 'must be an object of profiles')
  const sections = new Map(
    Object.entries(profiles).map(([name, section]) => [name, readProfile(file, name, section)] as const),
  )
  return {
    file,
    common: readSection({ kind, file, prefix: '', values: common }),
    profile: (name) => sections.get(name) ?? (() => undefined),
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
  if (name === undefined) throw fail(`is no setting${didYouMean(key, keysOf(kind))}`)
  const row: OptionRow<unknown> = OPTIONS[name]
  if (kind === 'project' && !row.project) throw fail(notForProjects(row))
  if (row.secret && key === name) throw fail(`is not kept here: name a file that holds it as ${name}File`)
  const origin: Origin = { kind, text: `${prefix}${key} in ${file}` }
  try {
    const parsed = parseValue(value, row, (text) => fullText(text, row, origin, file))
    if (kind === 'project' && row.project === 'this machine') mustBeHere(parsed, row)
    return [name, { value: parsed, origin }]
  } catch (cause) {
    if (cause instanceof RelayError) throw cause
    throw fail(cause instanceof Error ? cause.message : 'bad value')
  }
}

/** Numbers and lists may be written as such. */
function parseValue(value: unknown, row: OptionRow<unknown>, full: (text: string) => string): unknown {
  const text = Array.isArray(value)
    ? value.join(row.list ? '\n' : ',')
    : typeof value === 'number'
      ? String(value)
      : value
  if (typeof text !== 'string') throw new Error('must be a text, a number, or a list of texts')
  if (text === '') throw new Error('must not be empty: leave it out instead')
  const parsed = row.parse(full(text))
  const fits =
    typeof value === 'string' || (Array.isArray(value) ? Array.isArray(parsed) : typeof parsed === 'number')
  if (!fits) throw new Error('must be a text')
  return parsed
}

/** What is a file's or folder's name is relative to the settings file, or to the user's home (`~/`). */
function fullText(text: string, row: OptionRow<unknown>, origin: Origin, file: string): string {
  if (!row.secret && row !== OPTIONS.home) return text
  const full = path.resolve(path.dirname(file), text.replace(/^~(?=\/|$)/, homedir()))
  return row.secret ? readSecretFile(full, origin) : full
}

/** The setting that a key means; a secret is named by the file it lies in. */
function optionNamed(key: string): OptionName | undefined {
  if (isOptionName(key)) return key
  const name = key.replace(/File$/, '')
  return isOptionName(name) && 'secret' in OPTIONS[name] ? name : undefined
}

/** What a file of that kind may say. */
export function keysOf(kind: Kind): string[] {
  const names = OPTION_NAMES.map((name) => [name, OPTIONS[name]] as const)
  if (kind === 'project') return names.filter(([, row]) => 'project' in row).map(([name]) => name)
  return ['profiles', ...names.map(([name, row]) => ('secret' in row ? `${name}File` : name))]
}

function notForProjects({ env, flag, secret }: OptionRow<unknown>): string {
  const ways = [flag?.split(' ')[0], env, secret && `${env}_FILE`].filter(Boolean).join(' or ')
  return `is yours to say, not a project's: ${ways} sets it`
}

function mustBeHere(value: unknown, { env }: OptionRow<unknown>): void {
  const addresses = [value].flat().map((text) => String(text).replace(/^[^/]*=/, ''))
  if (addresses.some((address) => !isLoopback(new URL(address).hostname)))
    throw new Error(`must be on this machine in a project's file: ${env} sets any other`)
}

function wrong(file: string, key: string, why: string): RelayError {
  return new RelayError('settings', `${file}: ${key} ${why}`)
}
