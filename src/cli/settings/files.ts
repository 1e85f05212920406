import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { createTrust, chmodAdvice } from '../../base/trust.js'
import { isObject, parseJson } from '../../json/parse.js'
import { lineOf } from '../../json/text.js'
import type { Shell } from '../command.js'
import type { Context } from '../context.js'
import { userFile } from './table.js'
import { attempt, readText } from './text.js'

/**
 * Reads the secret in a file, without the line end that editors add. It can be a pipe (`<(pass …)`). With `folder`, the
 * file must be in this folder after resolving links, since a project names it: any other file of the user would sign or
 * be sent as a secret.
 * @throws RelayError `settings`; AbortError
 */
export async function readSecretFile(
  shell: Shell,
  file: string,
  setting: string,
  folder?: string,
): Promise<string> {
  try {
    const resolved = folder === undefined ? file : resolveWithin(folder, file)
    const text = await readText(shell, resolved, 'device')
    if (text === undefined) throw new RelayError('settings', `${file} cannot be read`)
    const secret = text.replace(/(?:\r\n|\n|\r)$/, '')
    // Refused, since ignoring the empty file would silently generate another secret.
    if (secret === '') throw new RelayError('settings', `${file} is empty`)
    return secret
  } catch (cause) {
    shell.signal.throwIfAborted()
    throw new RelayError('settings', `${setting}: ${toRelayError(cause).message}`, { cause })
  }
}

function resolveWithin(folder: string, file: string): string {
  const resolved = attempt(file, () => realpathSync(file))
  if (isWithin(folder, resolved)) return resolved
  throw new RelayError(
    'settings',
    `${file} is not in this folder, and a project can name no other file. Move it into the folder, or set the variable in the environment`,
  )
}

/** True if a file is in a folder, after resolving links. */
function isWithin(folder: string, resolved: string): boolean {
  const inside = path.relative(
    attempt(folder, () => realpathSync(folder)),
    resolved,
  )
  return inside !== '..' && !inside.startsWith(`..${path.sep}`) && !path.isAbsolute(inside)
}

/**
 * Reads the JSON object in a regular file. Undefined if there is none. @throws RelayError `settings` with the line of a
 * syntax error
 */
export async function readJsonObject(
  shell: Shell,
  file: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const text = (await readText(shell, file, 'regular'))?.replaceAll(/\r\n?/g, '\n')
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    // The parser's own message quotes the text, and has the position only in some cases.
    throw new RelayError('settings', `${file}, line ${lineOf(text)}: not JSON`, { cause })
  }
  if (isObject(value)) return value
  throw new RelayError('settings', `${file}: must be one JSON object, { … }`)
}

const PROJECT_FILE = 'relay.json'
const REMEDY = 'To use it, check its content, then make it yours with chown and chmod go-w'

type Place = Pick<Context, 'cwd' | 'env'>

/** Lists the settings files whose changes take effect while relay runs, including those that do not exist yet. */
export function watchedFiles(context: Place & Pick<Context, 'configFolder'>): readonly string[] {
  const { usable } = projectFiles(context, createTrust(context.env))
  return [...usable, userFile(context)]
}

/**
 * Finds `.env` of the working folder (not a folder of that name, as for Python), and the nearest `relay.json`. Files of
 * other users are ignored, and links that lead out of the checkout: git stores links, so their author could name any
 * file of the user.
 */
export function folderFiles(
  context: Place,
  log: Log,
): { readonly dotenv?: string; readonly project?: string } {
  const distrust = createTrust(context.env)
  const { usable, passed, git, root } = projectFiles(context, distrust)
  const isUsable = (file: string, instead: string): boolean => {
    if (!existsSync(file)) {
      log.warn(`${file} is ignored: it is a link to what is not there. Make that, or remove the link`)
      return false
    }
    const why = distrust(file)
    if (why !== undefined) log.warn(`${file} is ignored: ${why}. ${REMEDY}${chmodAdvice(file)}`)
    const isInside = why !== undefined || isWithin(root, realpathSync(file))
    if (!isInside)
      log.warn(
        `${file} is ignored: it is a link that leads out of ${root}. Put a copy of the file in its place, or ${instead}`,
      )
    return why === undefined && isInside
  }
  const dotenv = path.join(context.cwd, '.env')
  const found = attempt(dotenv, () => statSync(dotenv, { throwIfNoEntry: false }))
  const hasDotenv = isThere(dotenv) && !found?.isDirectory() && isUsable(dotenv, IN_ENVIRONMENT)
  const project = usable.filter(isThere).find((file) => isUsable(file, IN_OWN_FILE))
  const ignored = passed.find(existsSync)
  if (project === undefined && ignored !== undefined)
    log.warn(
      `${ignored} is ignored, because ${git} is not trusted: ${distrust(git)}. ${REMEDY}${chmodAdvice(git)}`,
    )
  return { ...(hasDotenv && { dotenv }), ...(project !== undefined && { project }) }
}

const IN_ENVIRONMENT = 'set its variables in the environment'
const IN_OWN_FILE = 'move its settings into your own config.json'

/** True if a file, or a link of that name, exists. */
function isThere(file: string): boolean {
  return attempt(file, () => lstatSync(file, { throwIfNoEntry: false })) !== undefined
}

/**
 * Lists the places of `relay.json`, nearest first: in the working folder, and up to the root of its git checkout.
 * Outside a checkout only the working folder counts, so that no file in a shared parent folder does. Neither does a
 * checkout whose `.git` is another user's, from which any program would run commands (CVE-2022-24765). `root` is that
 * of the checkout, else the working folder.
 */
function projectFiles({ cwd }: Place, distrust: (file: string) => string | undefined) {
  const files: string[] = []
  for (let folder = path.resolve(cwd); ; folder = path.dirname(folder)) {
    files.push(path.join(folder, PROJECT_FILE))
    const git = path.join(folder, '.git')
    const isCheckout = existsSync(git)
    if (isCheckout && distrust(git) === undefined) return { usable: files, passed: [], git, root: folder }
    if (isCheckout || folder === path.dirname(folder)) {
      const passed = isCheckout ? files.slice(1) : []
      return { usable: files.slice(0, 1), passed, git, root: path.resolve(cwd) }
    }
  }
}
