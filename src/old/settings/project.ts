import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Log } from '../../base/log.js'
import { isLoopback } from '../../base/loopback.js'
import { parseForward } from '../../dispatch/routes.js'
import type { OptionSpec } from './option-spec.js'
import type { Trust } from './trust.js'

export const PROJECT_FILE = 'relay.json'

/**
 * The project's settings file: the nearest `relay.json` from the working folder up to the root of its git checkout. Outside
 * a checkout only the working folder counts, so that no file in a shared parent folder does. A file of another user is
 * ignored with a warning.
 */
export function findProjectFile(cwd: string, trust: Trust, log: Log): string | undefined {
  const folders = projectFolders(cwd, trust)
  const found = folders.map(projectFile).find((file) => existsSync(file) && isTrusted(file, trust, log))
  if (found === undefined) warnOfCheckout(cwd, folders, trust, log)
  return found
}

/** The folders where the project's settings file can be, nearest first. */
export function projectFolders(cwd: string, { distrust }: Trust): string[] {
  return upToCheckout(cwd, (git) => existsSync(git) && distrust(git) === undefined) ?? [path.resolve(cwd)]
}

/** Whether the file is trusted; if not, a warning says why. */
export function isTrusted(file: string, { distrust }: Trust, log: Log): boolean {
  const why = distrust(file)
  if (why !== undefined) log.warn(`${file} is ignored: ${why}. ${REMEDY}`)
  return why === undefined
}

const REMEDY = 'To use it, check its content, then make it yours with chown and chmod go-w'

/** Warns of a settings file that is ignored because the checkout's `.git` is not trusted. */
function warnOfCheckout(cwd: string, folders: readonly string[], { distrust }: Trust, log: Log): void {
  const checkout = upToCheckout(cwd, existsSync) ?? []
  const file = checkout
    .filter((folder) => !folders.includes(folder))
    .map(projectFile)
    .find(existsSync)
  if (file === undefined) return
  const git = path.join(checkout.at(-1) ?? cwd, '.git')
  log.warn(`${file} is ignored, because ${git} is not trusted: ${distrust(git)}. ${REMEDY}`)
}

function projectFile(folder: string): string {
  return path.join(folder, PROJECT_FILE)
}

/** The folders from `cwd` up to the first whose `.git` counts; undefined when there is none. */
function upToCheckout(cwd: string, counts: (git: string) => boolean): string[] | undefined {
  const folders: string[] = []
  for (let folder = path.resolve(cwd); ; folder = path.dirname(folder)) {
    folders.push(folder)
    if (counts(path.join(folder, '.git'))) return folders
    if (folder === path.dirname(folder)) return undefined
  }
}

/**
 * Checks a value from a project's file. The project may point some settings at this machine only.
 * @throws Error whose message completes "<name>: …".
 */
export function checkThisMachine(value: unknown, { env, project, list }: OptionSpec): void {
  if (project !== 'this machine') return
  const addresses = [value].flat().map((text) => (list ? forwardAddress(String(text)) : String(text)))
  if (addresses.some((address) => !isLoopback(new URL(address).hostname)))
    throw new Error(`must be on this machine in a project's file: ${env} in the environment sets any other`)
}

/** The address of a route, as forwarding reads it. */
function forwardAddress(text: string): string {
  const { target } = parseForward(text)
  return target.kind === 'http' ? target.url : ''
}
