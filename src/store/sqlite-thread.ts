// The worker thread that holds the database of a running instance, so that a flush blocks nothing else. `in-thread.ts` starts it.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openEngine } from './open-engine.js'
import { Outbox } from './outbox.js'
import type { Sql, SqlRow, Step } from './sql.js'
import { type Failure, failureOf } from './storage-error.js'

/** What the thread is asked. */
export type Question =
  | { readonly kind: 'query'; readonly step: Step }
  | { readonly kind: 'transaction'; readonly steps: readonly Step[]; readonly grows: boolean }
  | { readonly kind: 'usedBytes' }
  | { readonly kind: 'shrink' }
  /** `closed`: one number in shared memory, set to 1 and notified once it is done. */
  | { readonly kind: 'close'; readonly closed?: Int32Array }

/** A numbered question. */
export interface Request {
  readonly id: number
  readonly question: Question
}

/** The answer to the question of that number; 0 is the opening. */
export type Answer = { readonly id: number } & ({ readonly result: unknown } | { readonly failure: Failure })

if (parentPort) void run(parentPort)

async function run(port: MessagePort): Promise<void> {
  const outbox = new Outbox<Answer>(port)
  const { file }: { readonly file: string } = workerData
  try {
    const engine = await openEngine(file)
    port.on('message', (requests: readonly Request[]) => {
      for (const request of requests) void answer(engine, request, outbox)
    })
    outbox.post({ id: 0, result: undefined })
  } catch (error) {
    outbox.post({ id: 0, failure: failureOf(error) })
  }
}

async function answer(engine: Sql, { id, question }: Request, outbox: Outbox<Answer>): Promise<void> {
  try {
    const result = await ask(engine, question)
    outbox.post({ id, result }, buffersOf(result))
  } catch (error) {
    outbox.post({ id, failure: failureOf(error) })
  }
}

async function ask(engine: Sql, question: Question): Promise<unknown> {
  if (question.kind === 'query') return engine.query(question.step.sql, question.step.values)
  if (question.kind === 'transaction') return engine.transaction(question.steps, question)
  if (question.kind === 'usedBytes') return engine.usedBytes()
  if (question.kind === 'shrink') return engine.shrink()
  await engine[Symbol.asyncDispose]()
  if (question.closed) announce(question.closed)
  return undefined
}

/** Wakes the main thread, which waits without its event loop. */
function announce(closed: Int32Array): void {
  Atomics.store(closed, 0, 1)
  Atomics.notify(closed, 0)
}

/** The memory of the bytes in a query's rows, which is moved instead of copied: the library gives each value its own. */
function buffersOf(result: unknown): ArrayBuffer[] {
  if (!Array.isArray(result)) return []
  const rows: readonly (SqlRow | readonly SqlRow[])[] = result
  return rows
    .flat()
    .flatMap((row) =>
      Object.values(row).flatMap((value) =>
        value instanceof Uint8Array && value.buffer instanceof ArrayBuffer ? [value.buffer] : [],
      ),
    )
}
