import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Disposal } from '../../src/base/disposal.js'
import { emptyFolder } from './context.js'

/** A session of its own, apart from that of whoever runs the tests. */
export interface Session extends AsyncDisposable {
  /** A program with this environment is in the session. */
  readonly env: Readonly<Record<string, string>>
}

export interface Keyring extends Session {
  /** As a person does who locks the screen. */
  lock(): void
}

/** Milliseconds. */
const LIMIT = 20_000

/** No service is started by being asked for: what a test has not started is not there. */
const BUS = (folder: string): string => `<busconfig>
  <type>session</type>
  <listen>unix:dir=${folder}</listen>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

/** A D-Bus session without any service. */
export async function startSession(): Promise<Session> {
  const folder = emptyFolder()
  writeFileSync(path.join(folder, 'bus.conf'), BUS(folder))
  const bus = spawn('dbus-daemon', [`--config-file=${folder}/bus.conf`, '--nofork', '--print-address'])
  const [address] = await once(createInterface(bus.stdout), 'line')
  return { env: environment(folder, String(address)), [Symbol.asyncDispose]: () => stop(bus) }
}

/** A D-Bus session with a GNOME keyring, unlocked. */
export async function startKeyring(): Promise<Keyring> {
  await using starting = new Disposal()
  const { env } = starting.use(await startSession())
  const args = ['--unlock', '--components=secrets', '--foreground']
  const daemon = spawn('gnome-keyring-daemon', args, { env, stdio: ['pipe', 'ignore', 'ignore'] })
  starting.defer(() => stop(daemon))
  daemon.stdin.end('password')
  await eventually(() => send(env, 'ReadAlias', 'string:default').includes('/collection/') || undefined)
  const session = starting.move()
  return {
    env,
    lock: () => void send(env, 'Lock', 'array:objpath:/org/freedesktop/secrets/collection/login'),
    [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
  }
}

export interface SilentSession extends Session {
  /** Once someone is waiting for a word. */
  readonly reached: Promise<unknown>
}

/** A D-Bus that takes every connection and never says a word. */
export async function startSilentSession(): Promise<SilentSession> {
  const folder = emptyFolder()
  const sockets = new Set<{ destroy(): void }>()
  const server = createServer((socket) => sockets.add(socket)).listen(`${folder}/bus`)
  await once(server, 'listening')
  return {
    env: environment(folder, `unix:path=${folder}/bus`),
    reached: once(server, 'connection'),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

/** A session's environment as `env` takes it. */
export function assignments(env: Session['env']): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}

/** The processes by which `parent` calls its keychain. */
export function helpersOf(parent: number): number[] {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return processes.map(Number).filter((pid) => {
    const { state, parent: itsParent } = statusOf(pid) ?? {}
    return state !== 'Z' && itsParent === parent && /keychain-helper/.test(readProc(pid, 'cmdline'))
  })
}

/** Not so for one that has ended and that nobody has asked about. */
export function isAlive(pid: number): boolean {
  return !['Z', undefined].includes(statusOf(pid)?.state)
}

/** What `/proc/<pid>/<file>` holds; nothing once the process is gone. */
export function readProc(pid: number, file: 'cmdline' | 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** The process's state and parent, which follow its name: that is in brackets, and may hold any character. */
function statusOf(pid: number): { state: string | undefined; parent: number } | undefined {
  const stat = readProc(pid, 'stat')
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' ? undefined : { state, parent: Number(parent) }
}

/** What `find` finds, as soon as it does. */
export async function eventually<Found>(find: () => Found | undefined): Promise<Found> {
  for (const until = Date.now() + LIMIT; Date.now() < until; await sleep(20)) {
    const found = find()
    if (found !== undefined) return found
  }
  throw new Error('Waited in vain')
}

function environment(folder: string, address: string): Record<string, string> {
  const runtime = path.join(folder, 'run')
  mkdirSync(runtime)
  chmodSync(runtime, 0o700)
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    XDG_DATA_HOME: path.join(folder, 'data'),
    XDG_RUNTIME_DIR: runtime,
    DBUS_SESSION_BUS_ADDRESS: address,
  }
}

/** What the keyring answers; nothing while it is not there. */
function send(env: Readonly<Record<string, string>>, method: string, argument: string): string {
  const call = ['--dest=org.freedesktop.secrets', '/org/freedesktop/secrets']
  const args = [
    '--session',
    '--print-reply',
    '--reply-timeout=2000',
    ...call,
    `org.freedesktop.Secret.Service.${method}`,
    argument,
  ]
  try {
    return execFileSync('dbus-send', args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
