import type { Worker } from 'node:worker_threads'
import { sleep } from '../src/base/abort.js'

/** How long a thread may take to end after the command, in milliseconds. */
const LIMIT_MS = 1000

const live = new Set<Worker>()
process.on('worker', (worker) => {
  live.add(worker)
  worker.once('exit', () => live.delete(worker))
})

/**
 * Ends the process by SIGKILL, after calling `report`, when a thread does not end after the command. A thread that waits in the
 * kernel for a disk keeps the process, and process.exit() waits for it too (measured).
 */
export async function killIfStuck(report: () => void): Promise<void> {
  if (live.size === 0) return
  await Promise.all([written(process.stdout), written(process.stderr)])
  await sleep(LIMIT_MS)
  if (live.size === 0) return
  report()
  process.kill(process.pid, 'SIGKILL')
}

/** Resolves when all output has been written, or cannot be. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => stream.write('', () => resolve()))
}
