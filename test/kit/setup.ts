import { chmodSync, mkdtempSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'
import { Closing } from './closing.js'
import { leash } from './daemon.js'
import type { Answer, Parts } from './parts.js'

/** How each part is started. What a run does not use is not even loaded. */
const START: { readonly [Name in keyof Parts]: (run: Run) => Promise<Parts[Name]> } = {
  async cluster() {
    const { makeCluster } = await import('./postgres-server.js')
    return makeCluster()
  },
  async postgres(run) {
    const { startServer } = await import('./postgres-server.js')
    const server = run.closing.use(await startServer(await run.part('cluster')))
    return server.port
  },
  async keyring(run) {
    const { startKeyring } = await import('./keyring-daemon.js')
    const keyring = run.closing.use(await startKeyring())
    return keyring.env
  },
  async chromium(run) {
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
}

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

/** What tests share for as long as a run takes. */
class Run {
  readonly closing = new Closing()
  readonly #started = new Map<keyof Parts, Promise<unknown>>()

  /** Starts a part the first time that it is asked for. */
  async part<Name extends keyof Parts>(name: Name): Promise<Parts[Name]>
  async part(name: keyof Parts): Promise<unknown> {
    const part = this.#started.get(name) ?? START[name](this)
    this.#started.set(name, part)
    return part
  }

  async answer(socket: Socket): Promise<void> {
    // A name is short enough to come in one piece.
    const [bytes] = await once(socket, 'data')
    const name = String(bytes)
    socket.end(JSON.stringify(isPart(name) ? await this.#try(name) : { error: 'there is no such part' }))
  }

  async #try<Name extends keyof Parts>(name: Name): Promise<Answer<Name>> {
    try {
      return { value: await this.part(name) }
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }
}

function isPart(name: string): name is keyof Parts {
  return Object.hasOwn(START, name)
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
  // Ten thousand folders take a while, also if the run was killed; what was killed with it may still write.
  const removal = leash(`for _ in 1 2 3 4 5; do rm -rf '${folder}' && break; sleep 1; done`)
  const run = new Run()
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
