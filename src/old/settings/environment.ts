import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { OPTIONS, specOf } from './options.js'
import type { Given, Origin, Source, Variables } from './origin.js'
import { readSmallFile } from './small-file.js'
import { checkThisMachine } from './project.js'

/** Variables and their source. Relative file names in them are relative to `cwd`. */
export interface Place {
  readonly variables: Variables
  readonly kind: 'environment' | 'dotenv'
  readonly cwd: string
}

/**
 * Settings from variables. A secret, and an address that may hold one, can also be in the file that `<NAME>_FILE` names.
 * @throws RelayError `settings`, from the source, naming the variable.
 */
export function variableSource({ variables, kind, cwd }: Place): Source {
  return (name) => {
    const { env, secret, file: inFile = secret, parse } = specOf(name)
    const text = variables[env]
    if (text) return given(text, originOf(env, kind), parse)
    const file = inFile && variables[`${env}_FILE`]
    if (!file) return undefined
    const origin = originOf(`${env}_FILE`, kind)
    return given(readSecretFile(path.resolve(cwd, file), origin), origin, parse)
  }
}

/**
 * The setting in `BASE_URL`. Other programs use that variable too (test runners set it to "/"), so a value that relay cannot
 * use is ignored with a warning.
 */
export function bareBaseUrlSource({ variables, kind }: Place, log: Log): Source {
  const text = variables['BASE_URL']
  const origin = originOf('BASE_URL', kind)
  return (name) => {
    if (name !== 'baseUrl' || !text) return undefined
    try {
      const value = OPTIONS.baseUrl.parse(text)
      if (kind === 'dotenv') checkThisMachine(value, OPTIONS.baseUrl)
      return { value, origin }
    } catch {
      const valid = `absolute http:// or https:// address${kind === 'dotenv' ? ' on this machine' : ''}`
      const instead = kind === 'dotenv' ? 'RELAY_BASE_URL in the environment' : 'RELAY_BASE_URL'
      log.warn(`${origin.text} is ignored: it is no ${valid} (${instead} sets it for relay alone)`)
      return undefined
    }
  }
}

export function originOf(name: string, kind: Place['kind']): Origin {
  return { kind, text: kind === 'dotenv' ? `${name} in .env` : name }
}

/**
 * Parses a value; empty text counts as not set.
 * @throws RelayError `settings` that names the origin and what the value must be, never the value.
 */
export function given(text: string, origin: Origin, parse: (text: string) => unknown): Given | undefined {
  if (text === '') return undefined
  try {
    return { value: parse(text), origin }
  } catch (cause) {
    throw new RelayError(
      'settings',
      `${origin.text}: ${cause instanceof Error ? cause.message : 'invalid value'}`,
    )
  }
}

/**
 * The secret in a file, without the line end that editors and `echo` add. The file can be a pipe (`<(pass show relay)`).
 * @throws RelayError `settings` naming the setting that names the file.
 */
export function readSecretFile(file: string, { text }: Origin): string {
  let secret: string | undefined
  try {
    secret = readSmallFile(file, { streams: true })?.replace(/\r?\n$/, '')
  } catch (cause) {
    const why = cause instanceof RelayError ? cause.message : `${file} cannot be read`
    throw new RelayError('settings', `${text}: ${why}`, { cause })
  }
  if (secret === undefined) throw new RelayError('settings', `${text}: ${file} cannot be read`)
  // An error, since the file was meant to set the secret: ignoring it would silently make another secret.
  if (secret === '') throw new RelayError('settings', `${text}: ${file} is empty`)
  return secret
}
