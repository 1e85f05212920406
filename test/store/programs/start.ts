import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** A test program, running in a process of its own. */
export interface Started extends AsyncDisposable {
  readonly child: ChildProcess
  /** The next line it prints; fails, with what it said on stderr, when it ends without one. */
  line(): Promise<string>
  /** Lets it go on from where it waits for a line. */
  tell(text: string): void
  /** Ends it as a crash would, and waits until it is gone. */
  kill(): Promise<void>
  /** Waits until it ends by itself; its exit code and all it said on stderr. */
  end(): Promise<{ code: number | null; stderr: string }>
}

/** Starts a program, named by its path below `test/`, by way of `wrapper`, a command that takes another (`strace`, `sh -c`). */
export function start(program: string, args: readonly string[], wrapper: readonly string[] = []): Started {
  const file = fileURLToPath(new URL(`../../${program}.ts`, import.meta.url))
  const [command = '', ...rest] = [...wrapper, process.execPath, '--import', 'tsx', file, ...args]
  // In a process group of its own, so that what a wrapper has started goes with it.
  const child = spawn(command, rest, { stdio: 'pipe', detached: true })
  const exit = once(child, 'exit')
  const stderr = text(child.stderr)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const kill = async (): Promise<void> => {
    if (child.pid && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
    await exit
  }
  return {
    child,
    async line() {
      const { value, done } = await lines.next()
      if (done) throw new Error(`${program} ended: ${await stderr}`)
      return value
    },
    tell: (text) => void child.stdin.write(`${text}\n`),
    kill,
    async end() {
      await exit
      return { code: child.exitCode, stderr: await stderr }
    },
    [Symbol.asyncDispose]: kill,
  }
}
