import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'

/** A server in a process of its own, known by the `listening` object it prints. */
export interface Server extends AsyncDisposable {
  readonly url: string
  readonly pid: number
}

/** Starts `node <args>` in an empty data folder. */
export async function startServer(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Server> {
  const home = mkdtempSync(path.join(tmpdir(), 'relay-bench-'))
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], RELAY_HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  for await (const line of createInterface(child.stdout)) {
    const message: { type?: string; url?: string } = JSON.parse(line)
    if (message.type !== 'listening' || !message.url) continue
    child.stdout.resume()
    return { url: message.url, pid: child.pid ?? 0, [Symbol.asyncDispose]: () => stop() }
  }
  throw new Error(`node ${args.join(' ')} ended before it listened`)

  async function stop(): Promise<void> {
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
  }
}
