import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('serve.ts', import.meta.url))

export interface Served extends AsyncDisposable {
  readonly child: ChildProcess
  readonly url: string
  readonly webhook: string
  /** Ends it as a crash would, and waits until it is gone. */
  kill(): Promise<void>
}

/** Starts `serve.ts` as a process of its own, by way of `wrapper`, a command that takes another (`strace`, `nice`). */
export async function startServe(folder: string, wrapper: readonly string[] = []): Promise<Served> {
  const [command, ...args] = [...wrapper, process.execPath, '--import', 'tsx', PROGRAM, folder]
  // In a process group of its own: what the wrapper started does not outlive the test either.
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const exit = once(child, 'exit')
  const kill = async (): Promise<void> => {
    if (child.pid && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
    await exit
  }
  const url = await firstLine(child)
  child.stderr.resume()
  return { child, url, webhook: `${url}/webhook`, kill, [Symbol.asyncDispose]: kill }
}

async function firstLine({ stdout, stderr }: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  for await (const line of createInterface(stdout)) return line
  throw new Error(`The program ended before it listened: ${await text(stderr)}`)
}
