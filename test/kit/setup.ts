import { chmodSync, existsSync, mkdtempSync, statfsSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { Closing } from './closing.js'
import { leash } from './daemon.js'
import type { Parts } from './parts.js'

/** How each part is started. What a run does not use is not even loaded. */
const START = {
  async cluster(run: Run) {
    const { makeCluster } = await import('./postgres-server.js')
    return makeCluster(run.memory)
  },
  async postgres(run: Run) {
    const { startServer } = await import('./postgres-server.js')
    return run.closing.use(await startServer(String(await run.part('cluster')))).port
  },
  async keyring(run: Run) {
    const { startKeyring } = await import('./keyring-daemon.js')
    return run.closing.use(await startKeyring()).env
  },
  async chromium(run: Run) {
    const { chromium } = await import('playwright-core')
    const server = await chromium.launchServer({
      executablePath: '/usr/bin/chromium',
      args: CHROMIUM_ARGS,
      host: '127.0.0.1',
      // Vitest's own handlers end the run, and with it this.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    })
    run.closing.defer(() => server.close())
    return server.wsEndpoint()
  },
} satisfies { readonly [Name in keyof Parts]: (run: Run) => Promise<Parts[Name]> }

/** Without a sandbox of its own (containers have none to give), and without calls home. */
const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A folder in memory, for databases: they wait for a busy disk, and relay waits for them no longer than 4 s. Linux has it. */
const MEMORY = '/dev/shm'
/** What the databases of a run take, and more. Containers often have only 64 MB there. Bytes. */
const MEMORY_NEEDED = 2 ** 31

function isRoomy(folder: string): boolean {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= MEMORY_NEEDED
}

/** What tests share for as long as a run takes. */
class Run {
  readonly closing = new Closing()
  /** A folder in memory, if this machine has one. */
  readonly memory: string
  readonly #started = new Map<keyof Parts, Promise<unknown>>()

  constructor(memory: string) {
    this.memory = memory
  }

  /** Starts a part the first time that it is asked for. */
  part(name: keyof Parts): Promise<unknown> {
    const part = this.#started.get(name) ?? START[name](this)
    this.#started.set(name, part)
    return part
  }

  /** Answers a request for a part with its value, or why there is none. */
  async answer(socket: Socket): Promise<void> {
    // A name is short enough to come in one piece.
    const [name] = await once(socket.setEncoding('utf8'), 'data')
    try {
      socket.end(JSON.stringify({ value: await this.part(name) }))
    } catch (error) {
      socket.end(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }))
    }
  }
}

/**
 * Begins a run: all that it leaves behind, and the programs that it starts, is in one folder, which goes with the run; tests ask
 * for real programs over a socket, and each is started once.
 */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Projects with this configuration call it too, and get what the root project provides.
  if (!project.isRootProject()) return undefined
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-'))
  // The database runs as another user, whose folder is in this one.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  const memory = mkdtempSync(path.join(isRoomy(MEMORY) ? MEMORY : folder, 'relay-'))
  chmodSync(memory, 0o711)
  // Ten thousand folders take a while, also if the run was killed; what was killed with it may still write.
  const removal = leash(`for _ in 1 2 3 4 5; do rm -rf '${folder}' '${memory}' && break; sleep 1; done`)
  const run = new Run(memory)
  const server = createServer((socket) => {
    // A worker that has gone needs no answer.
    socket.on('error', () => {})
    void run.answer(socket).catch(() => {})
  })
  const parts = path.join(folder, 'parts')
  await once(server.listen(parts), 'listening')
  project.provide('parts', parts)
  return async () => {
    server.close()
    await run.closing[Symbol.asyncDispose]()
    removal.letGo()
  }
}
