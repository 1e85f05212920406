import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Closing } from './closing.js'
import { Daemon } from './daemon.js'
import { emptyFolder, type Env } from './folder.js'
import { LIMIT_MS } from './limit.js'

const PASSWORD = 'password'
/** Milliseconds until the keyring must be there. */
const COLLECTION = '/org/freedesktop/secrets/collection/login'

/** No service is started by being asked for: what a test has not started is not there. */
const BUS = (folder: string): string => `<busconfig>
  <type>session</type>
  <listen>unix:dir=${folder}</listen>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

/**
 * A D-Bus session apart from that of the user who runs the tests, without a keyring, or any other service. A program with its
 * environment is in it.
 */
export async function startSession() {
  const folder = emptyFolder()
  writeFileSync(path.join(folder, 'bus.conf'), BUS(folder))
  const options = [`--config-file=${folder}/bus.conf`, '--nofork', '--print-address=2']
  const daemon = new Daemon('dbus-daemon', options)
  const address = await daemon.says(/^unix:/)
  const env: Env = { DBUS_SESSION_BUS_ADDRESS: address }
  return { env, [Symbol.asyncDispose]: () => daemon.stop() }
}

/** A session whose D-Bus takes every connection and never answers. `reached` resolves once a program waits for an answer. */
export async function startSilentSession() {
  const socket = `${emptyFolder()}/bus`
  const connections = new Set<{ destroy(): void }>()
  const server = createServer((connection) => connections.add(connection)).listen(socket)
  await once(server, 'listening')
  return {
    env: { DBUS_SESSION_BUS_ADDRESS: `unix:path=${socket}` },
    reached: once(server, 'connection'),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const connection of connections) connection.destroy()
      await once(server, 'close')
    },
  }
}

/** A session with a GNOME keyring, unlocked. */
export async function startKeyring() {
  await using starting = new Closing()
  const session = starting.use(await startSession())
  const folder = emptyFolder()
  const runtime = path.join(folder, 'run')
  mkdirSync(runtime)
  chmodSync(runtime, 0o700)
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    XDG_DATA_HOME: path.join(folder, 'data'),
    XDG_RUNTIME_DIR: runtime,
    ...session.env,
  }
  const args = ['--unlock', '--components=secrets', '--foreground']
  const daemon = starting.use(new Daemon('gnome-keyring-daemon', args, { env, input: PASSWORD }))
  const until = performance.now() + LIMIT_MS
  for (let alias = ''; !alias.includes('/collection/'); await sleep(20)) {
    daemon.check()
    if (performance.now() > until) throw new Error(`no keyring has come up: ${alias}`)
    alias = await send(env, 'ReadAlias', 'string:default')
  }
  const closing = starting.move()
  return {
    env: session.env,
    /** Locks it, as a person does who locks the screen. */
    async lock(): Promise<void> {
      await send(env, 'Lock', `array:objpath:${COLLECTION}`)
    },
    unlock: () => unlock(path.join(runtime, 'keyring/control')),
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  }
}

/**
 * Gives the keyring its password, as a sign-in to the desktop does (pam_gnome_keyring): a byte that carries the sender's
 * user, then the request's length, its kind (1: unlock), and the password after its length. The answer ends with 0.
 */
async function unlock(control: string): Promise<void> {
  const request = Buffer.alloc(1 + 12 + PASSWORD.length)
  request.writeUInt32BE(12 + PASSWORD.length, 1)
  request.writeUInt32BE(1, 5)
  request.writeUInt32BE(PASSWORD.length, 9)
  request.write(PASSWORD, 13)
  const socket = connect(control)
  socket.write(request)
  const [answer] = await once(socket, 'data')
  socket.destroy()
  if (!Buffer.isBuffer(answer) || answer.readUInt32BE(4) !== 0)
    throw new Error(`the keyring stays locked: ${String(answer)}`)
}

/** What the keyring answers; what went wrong while it is not there. */
async function send(env: Env, method: string, argument: string): Promise<string> {
  const call = ['--dest=org.freedesktop.secrets', '/org/freedesktop/secrets']
  const args = ['--session', '--print-reply', '--reply-timeout=2000', ...call]
  try {
    const options = [...args, `org.freedesktop.Secret.Service.${method}`, argument]
    return (await promisify(execFile)('dbus-send', options, { env })).stdout
  } catch (error) {
    return String(error)
  }
}
