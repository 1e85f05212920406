import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { deadline, onAbort } from '../base/abort.js'
import { errorCode } from '../base/errno.js'
import { RelayError } from '../base/errors.js'
import type { RawEvent } from './events.js'
import type { Outcome, Task } from './large-worker.js'
import type { Unpacked, UnpackParts } from './unpack.js'

/** Reads large messages in a worker thread, so that they never block the event loop. */
export interface LargeMessages extends AsyncDisposable {
  /**
   * Reads one message at a time. Undefined for a message that is not a request.
   * @throws what the thread threw.
   */
  read(event: RawEvent): Promise<Unpacked | undefined>
}

export interface LargeLimits {
  /** Milliseconds in which a message must be read: some ten times what a message of 25 MiB takes. */
  readonly time: number
  /** Milliseconds after which an idle thread is terminated. */
  readonly idle: number
  /** Milliseconds for all remaining messages together once relay stops. */
  readonly closing: number
}

export const LARGE_LIMITS: LargeLimits = { time: 30_000, idle: 5000, closing: 3000 }

const MIB = 1_048_576
/**
 * Limit of the thread's heap, as a multiple of `maxBody`. The code itself bounds memory outside the heap. A text is at
 * most twice as long as a body and takes two bytes per character. A body that came as a string needs two such texts. The
 * limit is generous, since a thread that asks for much more at once crashes the process.
 */
const HEAP_FACTOR = 16
const HEAP_BASE_MIB = 64

/** Starts the thread for the first message. `signal` aborts when relay stops. */
export function createLargeMessages(
  parts: UnpackParts,
  signal: AbortSignal,
  limits: LargeLimits = LARGE_LIMITS,
): LargeMessages {
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  const closed = new AbortController()
  const unsubscribe = onAbort(signal, () => setTimeout(() => closed.abort(), limits.closing).unref())
  const terminate = async (): Promise<void> => {
    clearTimeout(idle)
    const terminating = worker
    worker = undefined
    await terminating?.terminate()
  }
  return {
    async read(event) {
      clearTimeout(idle)
      if (closed.signal.aborted) return refused('relay is stopping')
      worker ??= startWorker(parts.maxBody, (exited) => {
        if (worker === exited) worker = undefined
      })
      const until = deadline(limits.time, closed.signal)
      try {
        const outcome = await runTask(worker, taskOf(event, parts), until)
        idle = setTimeout(() => void terminate(), limits.idle).unref()
        return outcome && 'refused' in outcome ? fromOutcome(outcome) : outcome
      } catch (error) {
        await terminate()
        if (closed.signal.aborted) return refused('relay is stopping')
        if (until.aborted) return refused(`reading it took over ${limits.time / 1000} s`)
        if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY') return refused('reading it took too much memory')
        throw error
      }
    },
    async [Symbol.asyncDispose]() {
      unsubscribe()
      await terminate()
    },
  }
}

function refused(reason: string): Unpacked {
  return { refused: unreadable(reason) }
}

function unreadable(reason: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(reason) })
}

function fromOutcome({ refused: reason, kind, request }: Extract<Outcome, { refused: string }>): Unpacked {
  const refusals = {
    invalid_signature: { reason: () => reason },
    invalid_event: unreadable(reason),
    too_large: new RelayError('too_large', 'Request too large'),
  }
  return { refused: refusals[kind], ...(request && { request }) }
}

function taskOf(event: RawEvent, { secrets, scheme, maxBody }: UnpackParts): Task {
  const { current, previous } = secrets
  return {
    event,
    secrets: { current: current.reveal(), previous: previous?.reveal() },
    formSignature: scheme.formSignature,
    maxBody,
  }
}

/** Has the thread run the task. The thread keeps the process running only meanwhile. */
async function runTask(worker: Worker, task: Task, signal: AbortSignal): Promise<Outcome> {
  worker.ref()
  const replied = once(worker, 'message', { signal })
  worker.postMessage(
    task,
    task.event.blocks.map(({ buffer }) => buffer),
  )
  const [outcome]: Outcome[] = await replied
  worker.unref()
  return outcome
}

/** Starts the thread from compiled code or with tsx, depending on how this file runs. */
function startWorker(maxBody: number, onExit: (exited: Worker) => void): Worker {
  const extension = extname(fileURLToPath(import.meta.url))
  const file = new URL(`./large-worker${extension}`, import.meta.url)
  const byTsx = `import('tsx/esm/api').then(({ tsImport }) => tsImport('${file.href}', '${file.href}'))`
  const worker = new Worker(extension === '.ts' ? byTsx : file, {
    eval: extension === '.ts',
    // This process's own options, such as a preloaded module, could take its file descriptors.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_BASE_MIB + Math.ceil((HEAP_FACTOR * maxBody) / MIB) },
  })
  // Errors reach the pending task. Without a listener, a later error would end the process.
  return worker.on('error', () => {}).on('exit', () => onExit(worker))
}
