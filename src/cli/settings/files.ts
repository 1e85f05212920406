import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { createTrust } from '../../base/trust.js'
import { isObject, parseJson } from '../../json/parse.js'
import { lineOf } from '../../json/text.js'
import type { Context } from '../context.js'
import { userFile } from './table.js'

/** 1 MiB: hundreds of times the size of settings or a secret; of an endless device, soon read. */
const MAX_BYTES = 1_048_576

/** The text of a regular file of at most 1 MiB; undefined if there is none. @throws RelayError `settings` */
export function readSmallFile(file: string): string | undefined {
  const stats = attempt(file, () => statSync(file, { throwIfNoEntry: false }))
  // To open a pipe that nothing writes to would wait for ever.
  if (stats && !stats.isFile())
    throw new RelayError('settings', `${file} is not a regular file. Replace it with a file of at most 1 MiB`)
  return stats && readStart(file)
}

/**
 * The secret in a file, without the line end that editors add. It can be a pipe (`<(pass …)`), so it is read once. `folder`: the file has to
 * be in this folder, all links resolved, since a project names it: as a secret, any other file of the user would sign or be sent.
 * @throws RelayError `settings`
 */
export function readSecretFile(file: string, setting: string, folder?: string): string {
  try {
    const secret = readStart(folder === undefined ? file : resolveWithin(folder, file)).replace(/\r?\n$/, '')
    // An error, since the file was meant to set the secret: ignoring it would silently make another secret.
    if (secret === '') throw new RelayError('settings', `${file} is empty`)
    return secret
  } catch (cause) {
    throw new RelayError('settings', `${setting}: ${toRelayError(cause).message}`, { cause })
  }
}

function resolveWithin(folder: string, file: string): string {
  const resolved = attempt(file, () => realpathSync(file))
  const inside = path.relative(
    attempt(folder, () => realpathSync(folder)),
    resolved,
  )
  if (inside !== '..' && !inside.startsWith(`..${path.sep}`) && !path.isAbsolute(inside)) return resolved
  throw new RelayError(
    'settings',
    `${file} is not in this folder, and a project can name no other file. Move it into the folder, or set the variable in the environment`,
  )
}

function readStart(file: string): string {
  const bytes = Buffer.alloc(MAX_BYTES + 1)
  let size = 0
  attempt(file, () => {
    const opened = openSync(file, 'r')
    try {
      for (let read = -1; read !== 0; size += read)
        read = readSync(opened, bytes, size, bytes.length - size, null)
    } finally {
      closeSync(opened)
    }
  })
  if (size > MAX_BYTES) throw new RelayError('settings', `${file} is larger than 1 MiB`)
  return bytes.toString('utf8', 0, size)
}

function attempt<Result>(file: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

/** The JSON object in a regular file; undefined when there is none. @throws RelayError `settings` with the line of a syntax error */
export function readJsonObject(file: string): Readonly<Record<string, unknown>> | undefined {
  const text = readSmallFile(file)?.replace(/^\uFEFF/, '')
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    // The parser's own message quotes the text, and names the position only in some cases.
    throw new RelayError('settings', `${file}, line ${lineOf(text)}: not JSON`, { cause })
  }
  if (isObject(value)) return value
  throw new RelayError('settings', `${file}: must be one JSON object, { … }`)
}

const PROJECT_FILE = 'relay.json'
const REMEDY = 'To use it, check its content, then make it yours with chown and chmod go-w'

type Place = Pick<Context, 'cwd' | 'env'>

/** The settings files whose changes take effect while relay runs, also those that do not exist yet. */
export function watchedFiles(context: Place & Pick<Context, 'configFolder'>): readonly string[] {
  const { usable } = projectFiles(context, createTrust(context.env))
  return [...usable, userFile(context)]
}

/** `.env` of the working folder (no folder of that name, as Python has), and the nearest `relay.json`. Another user's is ignored. */
export function folderFiles(
  context: Place,
  log: Log,
): { readonly dotenv?: string; readonly project?: string } {
  const distrust = createTrust(context.env)
  const isTrusted = (file: string): boolean => {
    const why = distrust(file)
    if (why !== undefined) log.warn(`${file} is ignored: ${why}. ${REMEDY}`)
    return why === undefined
  }
  const dotenv = path.join(context.cwd, '.env')
  const found = attempt(dotenv, () => statSync(dotenv, { throwIfNoEntry: false }))
  const isUsable = found !== undefined && !found.isDirectory() && isTrusted(dotenv)
  const { usable, passed, git } = projectFiles(context, distrust)
  const project = usable.filter(existsSync).find(isTrusted)
  const ignored = passed.find(existsSync)
  if (project === undefined && ignored !== undefined)
    log.warn(`${ignored} is ignored, because ${git} is not trusted: ${distrust(git)}. ${REMEDY}`)
  return { ...(isUsable && { dotenv }), ...(project !== undefined && { project }) }
}

/**
 * Where `relay.json` can be, nearest first: in the working folder, and up to the root of its git checkout. Outside a checkout only the working
 * folder counts, so that no file in a shared parent folder does; nor where `.git` is another user's, which any program would run commands
 * from (CVE-2022-24765).
 */
function projectFiles({ cwd }: Place, distrust: (file: string) => string | undefined) {
  const files: string[] = []
  for (let folder = path.resolve(cwd); ; folder = path.dirname(folder)) {
    files.push(path.join(folder, PROJECT_FILE))
    const git = path.join(folder, '.git')
    const isCheckout = existsSync(git)
    if (isCheckout && distrust(git) === undefined) return { usable: files, passed: [], git }
    if (isCheckout || folder === path.dirname(folder))
      return { usable: files.slice(0, 1), passed: isCheckout ? files.slice(1) : [], git }
  }
}
