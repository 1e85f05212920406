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

/** A browser command that has not failed within this time has started the browser. Milliseconds. */
const START_LIMIT_MS = 2_000

/** Returns false if no browser starts. It outlives relay, and gets no Ctrl-C: it is started detached. */
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

/** Whether the program runs on, or has ended well: some only tell a browser that runs already. */
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
 * What to try in turn. BROWSER is a list of commands, as xdg-open and Python read it: between colons (on Windows semicolons), each a program with
 * arguments, and the address in place of `%s` or at the end. Without it, the system's own browser opens.
 */
function waysToOpen(address: string, env: Env): readonly (() => Promise<ChildProcess>)[] {
  const listed = env['BROWSER'] ?? ''
  if (listed === '') return [async () => (await import('open')).default(address)]
  return commandsIn(listed).map((command) => async () => {
    // `Google Chrome`: on a Mac the name of an application, which has no command.
    if (process.platform === 'darwin' && !command.includes('/'))
      return (await import('open')).default(address, { app: { name: command } })
    // One whose path has spaces is a program without arguments.
    const words = existsSync(command) ? [command] : command.split(/\s+/).filter(Boolean)
    const filled = words.map((word) => word.replaceAll('%s', () => address))
    const [program = '', ...args] = command.includes('%s') ? filled : [...words, address]
    return spawn(program, args, { detached: true, stdio: 'ignore', env: { ...env } })
  })
}

/** The commands of BROWSER. A Windows path has a colon of its own. */
function commandsIn(text: string): string[] {
  const all = text.split(process.platform === 'win32' ? ';' : ':')
  return all.map((command) => command.trim()).filter(Boolean)
}

/** Whether this shell is on another machine than its user's browser, as far as SSH says. */
export function isRemote(env: Env): boolean {
  return Boolean(env['SSH_CONNECTION'])
}

/** Whether BROWSER opens addresses on the user's machine, although this one is another: a terminal of VS Code sets it so, and forwards the port. */
function opensThere(env: Env): boolean {
  return env['TERM_PROGRAM'] === 'vscode' && Boolean(env['BROWSER'])
}

/** For a browser on another machine than relay, where 127.0.0.1 is that machine. */
export function forwardingHint(address: string): string {
  const { hostname, port } = new URL(address)
  return `From another machine, forward the port first: ssh -L ${port}:${hostname}:${port} <this machine>`
}

/** Systems whose windows are drawn by a server that a variable names. */
const WITH_SERVER: ReadonlySet<NodeJS.Platform> = new Set(['linux', 'freebsd', 'openbsd'])
/** Any of them names a display, or a browser that needs none. WSL opens the browser of Windows. */
const DISPLAYS = ['DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME', 'BROWSER'] as const

/** Whether a browser that relay opens can be seen by its user. Over SSH it would open on the other machine. */
export function hasDisplay(env: Env, platform: NodeJS.Platform = process.platform): boolean {
  if (isRemote(env)) return opensThere(env)
  return !WITH_SERVER.has(platform) || DISPLAYS.some((name) => Boolean(env[name]))
}

/**
 * Opens an address in the user's browser, unless that is on another machine or `opens` is false, and prints it for the case that none
 * opens; then what the command waits for. @throws the signal's reason
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
 * The instance's address, a one-time code, what to show (default: the list), whether the code still waits to be used, and when to ask that
 * within so many milliseconds.
 */
interface InspectorToOpen {
  readonly url: string
  readonly code: string
  readonly entry?: string | undefined
  readonly isPending: () => Promise<boolean>
  readonly wakeups: (limit: number) => AsyncIterable<unknown>
}

/** A minute: a browser that is started takes seconds, and a person types a code within it. */
const USE_LIMIT_MS = 60_000
/** 5 s: a browser that runs has opened the page by then. One that may not read the file never does. */
const SLOW_MS = 5_000

/**
 * Opens the inspector in the user's browser, through a private file that is removed once the code was used or a minute later. After 5
 * seconds it prints how to open the page by hand. `not started`: there is no browser, or it is on another machine. `not used`: it did not
 * open the page in time. @throws the signal's reason
 */
export async function openInspector(
  { env, signal, out }: Shell,
  { url, code, entry, isPending, wakeups }: InspectorToOpen,
): Promise<'opened' | 'not started' | 'not used'> {
  // Not by VS Code either: the private file is on this machine, and the code would stand in a process list.
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
 * Writes a page that leads to an address as soon as it is opened; undefined where it cannot. Only this user can read it (0600, in a
 * folder of its own with 0700), and only its path stands in a process list. The folder is visible in the home folder: a browser from a
 * Snap or Flatpak, as Ubuntu's are, reads no hidden one and no temporary one (https://github.com/jupyter/notebook/issues/4500).
 * Disposing of it removes it.
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
    // Another user could put another page in its place.
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
