import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { sleep } from '../base/wait.js'
import { isLoopback } from '../base/address.js'
import { ownPathExists } from '../base/own-files.js'
import type { Shell } from './command.js'
import type { Context } from './context.js'

type Env = Context['env']

/** Time after which a browser command that has not failed counts as started. Milliseconds. */
const START_LIMIT_MS = 2_000

/** Opens a browser, detached so that it outlives relay and does not get Ctrl-C. Returns false if none starts. */
async function openBrowser(
  address: string,
  { env, signal }: Pick<Shell, 'env' | 'signal'>,
): Promise<boolean> {
  for (const start of waysToOpen(address, env))
    try {
      if (await hasStarted(await start(), signal)) return true
    } catch {
      signal.throwIfAborted()
    }
  return false
}

/** True if the program keeps running or has ended without failure: some only notify a running browser. */
async function hasStarted(program: ChildProcess, signal: AbortSignal): Promise<boolean> {
  const settled = new AbortController()
  const both = { signal: AbortSignal.any([settled.signal, signal]) }
  program.unref()
  try {
    const exit = once(program, 'exit', both).then(([code]) => code === 0)
    return await Promise.race([exit, sleep(START_LIMIT_MS, both).then(() => true)])
  } finally {
    settled.abort()
  }
}

/**
 * Lists the ways to open an address, in order. BROWSER is a list of commands, as xdg-open and Python read it, separated
 * by colons (semicolons on Windows). Each is a program with arguments, and the address replaces `%s` or is added at the
 * end. Without BROWSER, the system's own browser opens.
 */
function waysToOpen(address: string, env: Env): readonly (() => Promise<ChildProcess>)[] {
  const listed = env['BROWSER'] ?? ''
  if (listed === '') return [async () => (await import('open')).default(address)]
  return commandsIn(listed).map((command) => async () => {
    // On a Mac, a name such as `Google Chrome` is an application without a command.
    if (process.platform === 'darwin' && !command.includes('/'))
      return (await import('open')).default(address, { app: { name: command } })
    // An existing path with spaces is a program without arguments.
    const words = existsSync(command) ? [command] : command.split(/\s+/).filter(Boolean)
    const filled = words.map((word) => word.replaceAll('%s', () => address))
    const [program = '', ...args] = command.includes('%s') ? filled : [...words, address]
    return spawn(program, args, { detached: true, stdio: 'ignore', env: { ...env } })
  })
}

/** Splits BROWSER into commands. A Windows path contains a colon itself. */
function commandsIn(text: string): string[] {
  const all = text.split(process.platform === 'win32' ? ';' : ':')
  return all.map((command) => command.trim()).filter(Boolean)
}

/** True if this shell is on another machine than its user's browser, according to SSH. */
export function isRemote(env: Env): boolean {
  return Boolean(env['SSH_CONNECTION'])
}

/**
 * True if BROWSER opens addresses on the user's machine although this is another one: a terminal of VS Code sets it so,
 * and forwards the port.
 */
function opensThere(env: Env): boolean {
  return env['TERM_PROGRAM'] === 'vscode' && Boolean(env['BROWSER'])
}

/** Explains port forwarding, for a browser on another machine, where 127.0.0.1 is that machine. */
export function forwardingHint(address: string): string {
  const { hostname, port } = new URL(address)
  return `From another machine, forward the port first: ssh -L ${port}:${hostname}:${port} <this machine>`
}

/** Systems on which a display server draws windows, named by a variable. */
const WITH_SERVER: ReadonlySet<NodeJS.Platform> = new Set(['linux', 'freebsd', 'openbsd'])
/** Variables that name a display, or a browser that needs none. WSL opens the browser of Windows. */
const DISPLAYS = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME', 'BROWSER'] as const

/** True if the user can see a browser that relay opens. Over SSH it would open on the other machine. */
export function hasDisplay(env: Env, platform: NodeJS.Platform = process.platform): boolean {
  if (isRemote(env)) return opensThere(env)
  return !WITH_SERVER.has(platform) || DISPLAYS.some((name) => Boolean(env[name]))
}

/**
 * Opens an address in the user's browser, unless that is on another machine or `opens` is false. Prints the address for
 * the case that none opens, and the message `waiting`. @throws the signal's reason
 */
export async function showAddress(
  { env, signal, out }: Shell,
  address: string,
  { opens, waiting }: { readonly opens: boolean; readonly waiting: string },
): Promise<void> {
  const remote = isRemote(env) && !opensThere(env)
  const opened = opens && !remote && (await openBrowser(address, { env, signal }))
  const ask = opened
    ? 'Your browser opens. If it does not, open this address'
    : 'Open this address in a browser'
  const isHere = remote && isLoopback(new URL(address).hostname)
  for (const line of [`${ask}:`, '', `  ${address}`, '', ...(isHere ? [forwardingHint(address), ''] : [])])
    out.say(line)
  out.say(waiting)
}

/**
 * An inspector to open: its address, a one-time code, the entry to show (default: the list), a check of the code, and
 * the times at which to check within `limit` milliseconds.
 */
interface InspectorToOpen {
  readonly url: string
  readonly code: string
  readonly entry?: string | undefined
  readonly isPending: () => Promise<boolean>
  readonly wakeups: (limit: number) => AsyncIterable<unknown>
}

/**
 * Time in which the code must be used: a browser starts within seconds, and a person types a code within a minute.
 * Milliseconds.
 */
const USE_LIMIT_MS = 60_000
/**
 * Time after which manual steps are printed: a running browser has opened the page by then, and one that may not read
 * the file never does. Milliseconds.
 */
const SLOW_MS = 5_000

/**
 * Opens the inspector in the user's browser, through a private file that is removed once the code is used or after a
 * minute. After 5 seconds it prints how to open the page by hand. `not started`: there is no browser, or it is on
 * another machine. `not used`: the page was not opened in time. @throws the signal's reason
 */
export async function openInspector(
  { env, signal, out }: Shell,
  { url, code, entry, isPending, wakeups }: InspectorToOpen,
): Promise<'opened' | 'not started' | 'not used'> {
  // VS Code cannot open it either: the private file is on this machine, and the code would be visible in a process
  // list.
  if (isRemote(env)) return 'not started'
  const suffix = entry === undefined ? '' : `/${entry}`
  using file = writeRedirectFile(env['HOME'] || homedir(), `${url}/inspect/#${code}${suffix}`)
  if (!file || !(await openBrowser(file.url, { env, signal }))) return 'not started'
  for await (const _ of wakeups(SLOW_MS)) if (!(await isPending())) return 'opened'
  out.say(`Your browser has not opened the inspector yet. Open ${url}/inspect/ and enter the code ${code}`)
  for await (const _ of wakeups(USE_LIMIT_MS - SLOW_MS)) if (!(await isPending())) return 'opened'
  return 'not used'
}

/**
 * Writes a page that redirects to an address when it is opened. Undefined if it cannot. Only this user can read it
 * (0600, in its own folder with 0700), and only its path is visible in a process list. The folder is a visible one in
 * the home folder, because a browser from a Snap or Flatpak, such as Ubuntu's, reads no hidden and no temporary folders
 * (https://github.com/jupyter/notebook/issues/4500). Disposing of it removes it.
 */
function writeRedirectFile(
  home: string,
  address: string,
): (Disposable & { readonly url: string }) | undefined {
  const page = `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>relay</title>
<p>Opening the inspector …</p>
<script>location.replace(${JSON.stringify(address)})</script>
`
  let folder: string | undefined
  const dispose = (): void => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
  try {
    // Another user could replace the page.
    if (!ownPathExists(home)) return undefined
    folder = mkdtempSync(path.join(home, 'relay-inspect-'))
    const file = path.join(folder, 'relay.html')
    writeFileSync(file, page, { mode: 0o600, flag: 'wx' })
    return { url: pathToFileURL(file).href, [Symbol.dispose]: dispose }
  } catch {
    dispose()
    return undefined
  }
}
