import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Lets the next flush of each thread of a process take so many seconds, until it is disposed of. Needs strace. */
export async function slowDown(pid: number, seconds: number): Promise<AsyncDisposable> {
  const calls = 'fsync,fdatasync'
  const delay = `inject=${calls}:delay_exit=${seconds * 1_000_000}:when=1`
  const args = ['-f', '-p', String(pid), '-e', `trace=${calls}`, '-e', delay]
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(strace, 'exit')
  for (let text = ''; !text.includes('attached');) text += String(await once(strace.stderr, 'data'))
  return {
    async [Symbol.asyncDispose]() {
      // The kernel then lets go of the process at once, also of a thread that strace delays.
      strace.kill('SIGKILL')
      await ended
    },
  }
}
