import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import path from 'node:path'
import { temporaryFolder } from './folder.js'

/** A server in a process of its own. */
export interface Server extends AsyncDisposable {
  readonly url: string
  readonly pid: number
}

export type Env = Readonly<Record<string, string>>

export const RELAY = path.resolve('dist/bin/relay.js')

/** Longer than any of them takes to start. */
const START_MS = 20_000

/** Starts the built `relay serve` without output, like the baselines. Default: in an empty data folder. */
export async function startRelay(env: Env, flags: readonly string[] = ['--quiet']): Promise<Server> {
  const port = await freePort()
  return start(process.execPath, [RELAY, 'serve', '--port', `${port}`, ...flags], env, port)
}

/** Starts `relay serve` of the built program that RELAY_EARLIER names; undefined when it names none. */
export async function startEarlierRelay(env: Env): Promise<Server | undefined> {
  const program = process.env['RELAY_EARLIER']
  if (!program) return undefined
  const port = await freePort()
  return start(process.execPath, [program, 'serve', '--port', `${port}`, '--quiet'], env, port)
}

/** Starts one of bench/programs. */
export async function startProgram(name: string, env: Env): Promise<Server> {
  const port = await freePort()
  return start(process.execPath, ['--import', 'tsx', `bench/programs/${name}.ts`, `${port}`], env, port)
}

async function start(command: string, args: readonly string[], env: Env, port: number): Promise<Server> {
  const home = temporaryFolder()
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'], HOME: home.path, RELAY_HOME: home.path, ...env },
    stdio: 'ignore',
  })
  const ended = once(child, 'close')
  const server: Server = {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      home[Symbol.dispose]()
    },
  }
  for (const begun = performance.now(); ; await sleep(20)) {
    if (await listens(port)) return server
    if (child.exitCode !== null || performance.now() - begun > START_MS) break
  }
  await server[Symbol.asyncDispose]()
  throw new Error(`${command} ${args.join(' ')} does not listen`)
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A free port. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || !address) throw new Error('unreachable: it listened on a port')
  return address.port
}
