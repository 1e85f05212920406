import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { atExit } from '../base/at-exit.js'
import { RelayError } from '../base/errors.js'
import { LIMIT_MS, type Sql, type SqlRow, type Step } from './sql.js'
import { Outbox } from './outbox.js'
import type { Answer, Question, Request } from './sqlite-thread.js'
import { storageError } from './storage-error.js'

/** When the disk hangs, what waits for it must not fill the memory: so many calls, and so many bytes in them (64 MiB). */
const MAX_WAITING = 4096
const MAX_BYTES = 67_108_864
/** How long closing may take, in milliseconds: the commits under way, and the log's copy into the database. */
const CLOSE_LIMIT_MS = 5000
/** How long a process that ends at once waits for the thread, in milliseconds: a commit, but not a disk that hangs. */
const EXIT_LIMIT_MS = 1000

/** A call that the thread has not answered. */
interface Call {
  readonly bytes: number
  readonly settle: (answer: Answer) => void
}

/**
 * The SQL contract over a connection in a worker thread of its own. Calls fail after {@link LIMIT_MS}, whatever the disk does.
 * @throws RelayError `storage` when the database cannot be opened.
 */
export async function openInThread(file: string): Promise<Sql> {
  const thread = await DatabaseThread.open(file)
  const ask = async <Result>(question: Question, options?: AskOptions<Result>): Promise<Result> =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the thread answers each question with its kind of result
    (await thread.ask(question, options as AskOptions<unknown>)) as Result
  return {
    query: (sql, values = []) => ask({ kind: 'query', step: { sql, values } }),
    transaction: (steps, { grows = false, onLate } = {}) =>
      ask(
        { kind: 'transaction', steps, grows },
        { onLate: (rows: Rows | undefined) => rows && onLate?.(rows) },
      ),
    usedBytes: () => ask({ kind: 'usedBytes' }),
    shrink: () => ask({ kind: 'shrink' }),
    [Symbol.asyncDispose]: () => thread.close(),
  }
}

type Rows = readonly (readonly SqlRow[])[]

interface AskOptions<Result> {
  /** Called with the result when it comes after the limit. */
  readonly onLate?: (result: Result) => void
  /** Milliseconds. */
  readonly limit?: number
}

class DatabaseThread {
  readonly #file: string
  readonly #worker: Worker
  readonly #outbox: Outbox<Request>
  readonly #calls = new Map<number, Call>()
  #lastId = 0
  /** The call after whose answer the thread ends, however late: ended within a call of the library it aborts the process. */
  #lastCall: number | undefined
  #bytes = 0
  #ended = false
  /**
   * Closes the database without the event loop, after what the thread was asked before. Ended within a call of the library, the
   * process aborts, which gives the wrong exit code and may leave a core dump.
   */
  readonly #closeAtExit = (): void => {
    const closed = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const requests: readonly Request[] = [{ id: ++this.#lastId, question: { kind: 'close', closed } }]
    this.#worker.postMessage(requests, [])
    Atomics.wait(closed, 0, 0, EXIT_LIMIT_MS)
  }

  private constructor(file: string) {
    this.#file = file
    this.#worker = startWorker(file)
    atExit.add(this.#closeAtExit)
    this.#outbox = new Outbox(this.#worker)
    this.#worker.on('message', (answers: readonly Answer[]) => {
      for (const answer of answers) this.#settle(answer.id, answer)
    })
    this.#worker.on('error', (error) => this.#end(error.message))
    this.#worker.on('exit', () => this.#end('its thread ended'))
  }

  static async open(file: string): Promise<DatabaseThread> {
    const thread = new DatabaseThread(file)
    try {
      await thread.#wait(0, 0)
      return thread
    } catch (error) {
      thread.#lastCall = 0
      throw error
    }
  }

  async ask(question: Question, options?: AskOptions<unknown>): Promise<unknown> {
    const { copy, buffers, bytes } = detach(question)
    if (this.#ended) throw this.#error('its thread ended')
    if (this.#calls.size >= MAX_WAITING || this.#bytes + bytes > MAX_BYTES)
      throw this.#error('too much waits for the disk. Try again later')
    const id = ++this.#lastId
    const answered = this.#wait(id, bytes, options)
    this.#outbox.post({ id, question: copy }, buffers)
    return answered
  }

  async close(): Promise<void> {
    if (this.#ended) return
    const id = ++this.#lastId
    // Without the limits of `ask`, which hold while the disk hangs.
    this.#outbox.post({ id, question: { kind: 'close' } })
    this.#lastCall = id
    await this.#wait(id, 0, { limit: CLOSE_LIMIT_MS })
    await this.#worker.terminate()
  }

  #wait(id: number, bytes: number, { onLate, limit = LIMIT_MS }: AskOptions<unknown> = {}): Promise<unknown> {
    this.#bytes += bytes
    return new Promise((resolve, reject) => {
      let late = false
      const timer = setTimeout(() => {
        late = true
        reject(this.#error(`it did not answer within ${limit / 1000} s. Check the disk`))
      }, limit)
      const settle = (answer: Answer): void => {
        clearTimeout(timer)
        if ('failure' in answer) reject(storageError(answer.failure, this.#file))
        else if (late) onLate?.(answer.result)
        else resolve(answer.result)
      }
      this.#calls.set(id, { bytes, settle })
    })
  }

  #settle(id: number, answer: Answer): void {
    const call = this.#calls.get(id)
    if (!call) return
    this.#calls.delete(id)
    this.#bytes -= call.bytes
    call.settle(answer)
    if (id === this.#lastCall) void this.#worker.terminate()
  }

  #end(message: string): void {
    this.#ended = true
    atExit.delete(this.#closeAtExit)
    for (const id of this.#calls.keys()) this.#settle(id, { id, failure: { code: 0, message } })
  }

  #error(message: string): RelayError {
    return storageError({ code: 0, message }, this.#file)
  }
}

/** Starts the thread from compiled code or with tsx, depending on how this file runs. */
function startWorker(file: string): Worker {
  const extension = extname(fileURLToPath(import.meta.url))
  const url = new URL(`./sqlite-thread${extension}`, import.meta.url)
  // The way that needs no thread for its hooks, which would take as long again.
  const byTsx = `require('tsx/cjs/api').require(${JSON.stringify(fileURLToPath(url))}, __filename)`
  return new Worker(extension === '.ts' ? byTsx : url, {
    eval: extension === '.ts',
    workerData: { file },
    // This process's own options, such as a preloaded module, could take its file descriptors.
    execArgv: [],
  })
}

/** A copy of a question's bytes in buffers that can be moved to the thread: copied once, and the caller keeps its own. */
function detach(question: Question): { copy: Question; buffers: ArrayBuffer[]; bytes: number } {
  if (question.kind !== 'transaction') return { copy: question, buffers: [], bytes: 0 }
  const buffers: ArrayBuffer[] = []
  let bytes = 0
  const steps = question.steps.map((step): Step => {
    const values = step.values?.map((value) => {
      if (typeof value === 'string') bytes += value.length
      if (!(value instanceof Uint8Array)) return value
      const own = new Uint8Array(value)
      buffers.push(own.buffer)
      bytes += own.length
      return own
    })
    return values ? { ...step, values } : step
  })
  return { copy: { ...question, steps }, buffers, bytes }
}
