import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { OPTIONS, type OptionRow } from '../options.js'
import type { Given, Origin, Source } from './origin.js'

export type Variables = Readonly<Record<string, string | undefined>>

/** Variables, and where they are from. `cwd` is what relative file names are relative to. */
export interface Place {
  readonly variables: Variables
  readonly kind: 'environment' | 'dotenv'
  readonly cwd: string
}

/** The variables of the working folder's `.env`; none where there is no such file (a folder of that name is Python's). */
export function readDotenv(folder: string): Variables {
  const file = path.join(folder, '.env')
  try {
    return parseEnv(readFileSync(file, 'utf8'))
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    if (code === 'ENOENT' || code === 'EISDIR') return {}
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

/**
 * Settings from variables. A secret's text may also lie in the file that `<NAME>_FILE` names.
 * @throws RelayError `settings`, from the source, naming the variable.
 */
export function variableSource({ variables, kind, cwd }: Place): Source {
  return (name) => {
    const { env, secret, parse }: OptionRow<unknown> = OPTIONS[name]
    const text = variables[env]
    if (text) return given(text, originOf(env, kind), parse)
    const file = secret && variables[`${env}_FILE`]
    if (!file) return undefined
    const origin = originOf(`${env}_FILE`, kind)
    return given(readSecretFile(path.resolve(cwd, file), origin), origin, parse)
  }
}

/** `BASE_URL` belongs to everyone (test runners set it to "/"), so one that is no web address is not ours. */
export function bareBaseUrlSource({ variables, kind }: Place, log: Log): Source {
  const text = variables['BASE_URL']
  return (name) => {
    if (name !== 'baseUrl' || !text) return undefined
    try {
      return { value: OPTIONS.baseUrl.parse(text), origin: originOf('BASE_URL', kind) }
    } catch {
      log.warn(
        'BASE_URL is ignored: it is no absolute http:// or https:// address (RELAY_BASE_URL sets it for relay alone)',
      )
      return undefined
    }
  }
}

function originOf(name: string, kind: Place['kind']): Origin {
  return { kind, text: kind === 'dotenv' ? `${name} in .env` : name }
}

/**
 * An empty text counts as not given.
 * @throws RelayError `settings` that names the origin and what the value must be, never the value.
 */
export function given(text: string, origin: Origin, parse: (text: string) => unknown): Given | undefined {
  if (text === '') return undefined
  try {
    return { value: parse(text), origin }
  } catch (cause) {
    throw new RelayError(
      'settings',
      `${origin.text}: ${cause instanceof Error ? cause.message : 'bad value'}`,
    )
  }
}

/**
 * The secret in a file, less one line end: editors and `echo` add one.
 * @throws RelayError `settings` naming where the file was named.
 */
export function readSecretFile(file: string, { text }: Origin): string {
  let secret: string
  try {
    secret = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw new RelayError('settings', `${text}: ${file} cannot be read`, { cause })
  }
  // Who names a file means to set the secret; without it another would be made in silence.
  if (secret === '') throw new RelayError('settings', `${text}: ${file} is empty`)
  return secret
}
