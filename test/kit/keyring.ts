import { once } from 'node:events'
import { createServer } from 'node:net'
import { emptyFolder, type Env } from './folder.js'
import { type Bus, startBus, startKeyring } from './keyring-daemon.js'
import { part } from './parts.js'

/** A D-Bus session apart from that of the user who runs the tests. A program with this environment is in it. */
export interface Session {
  readonly env: Env
}

export interface OwnSession extends Session, AsyncDisposable {}

export interface OwnKeyring extends OwnSession {
  /** Locks it, as a person does who locks the screen. */
  lock(): Promise<void>
  unlock(): Promise<void>
}

export interface SilentSession extends OwnSession {
  /** Resolves once a program waits for an answer. */
  readonly reached: Promise<unknown>
}

/** The run's one keyring, unlocked. Other tests use it at the same time. */
export async function keyring(): Promise<Session> {
  return { env: environment(await part('keyring')) }
}

/** A keyring of the test's own, for a test that locks it, and unlocked at first. */
export async function ownKeyring(): Promise<OwnKeyring> {
  const daemon = await startKeyring()
  return { ...sessionOf(daemon), lock: () => daemon.lock(), unlock: () => daemon.unlock() }
}

/** A session without a keyring, or any other service. */
export async function startSession(): Promise<OwnSession> {
  return sessionOf(await startBus())
}

/** A session whose D-Bus takes every connection and never answers. */
export async function startSilentSession(): Promise<SilentSession> {
  const socket = `${emptyFolder()}/bus`
  const connections = new Set<{ destroy(): void }>()
  const server = createServer((connection) => connections.add(connection)).listen(socket)
  await once(server, 'listening')
  return {
    env: environment(`unix:path=${socket}`),
    reached: once(server, 'connection'),
    async [Symbol.asyncDispose]() {
      server.close()
      for (const connection of connections) connection.destroy()
      await once(server, 'close')
    },
  }
}

function sessionOf(bus: Bus): OwnSession {
  return { env: environment(bus.address), [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose]() }
}

function environment(address: string): Env {
  return { DBUS_SESSION_BUS_ADDRESS: address }
}
