import { setImmediate } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { sizeOf } from '../size-of.js'
import { LIMIT_MS, type Sql, type SqlRow, type SqlValue, type Step, type TransactionOptions } from '../sql.js'
import { Batch, type BatchStep } from './batch.js'
import { journalPayload } from './control.js'
import { codeOf, isOfTransaction, isStalePlan, PostgresFailure, postgresError } from './error.js'
import { NO_ROW, Statements } from './statements.js'

export interface EngineParts {
  /** One connection, by which everything is written. */
  readonly writer: Pool
  readonly readers: Pool
  /** The database's address without a password, for messages. */
  readonly name: string
  /** What other relays know this one by. */
  readonly holder: string
}

type Rows = readonly (readonly SqlRow[])[]

/** What became of a transaction: its rows, undefined where a required step returned none, or why it failed. */
type Outcome = { readonly rows: Rows | undefined } | { readonly error: unknown }

/** A transaction that waits for its commit. */
interface Waiting {
  readonly steps: readonly Step[]
  readonly bytes: number
  readonly announce: readonly string[] | undefined
  readonly settle: (outcome: Outcome) => void
  readonly isSettled: () => boolean
}

/** Transactions and bytes (8 MiB) in one commit: enough that a burst shares it, few enough that none waits long for the others. */
const MAX_BATCH = 256
const MAX_BATCH_BYTES = 8_388_608
/** While the database is slow, what waits for it must not fill the memory: so many calls, and so many bytes in them (64 MiB). */
const MAX_WAITING = 4096
const MAX_WAITING_BYTES = 67_108_864
/** After so many milliseconds without an answer a connection is closed: it is dead, but looks alive. */
const STUCK_MS = 2 * LIMIT_MS
/**
 * About what the data takes: bodies, answers, and with each the rows and index entries that belong to it. The size of the files
 * says nothing of it, since they keep the space of what was deleted. The sums read an index and the attempts.
 */
const USED = `SELECT (SELECT coalesce(sum(size + 1024), 0) FROM delivery)
  + (SELECT coalesce(sum(octet_length(answer) + 512), 0) FROM attempt) AS bytes`

/**
 * One transaction writes to a profile at a time, whichever relay sends it, as in SQLite: what a transaction reads stays true until it is
 * committed, and numbers are given in the order of the commits. The lock is held for as long as the server works.
 */
const LOCK: BatchStep = {
  prepared: {
    text: 'SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))',
    name: 'relay_lock',
  },
  values: [],
}

/** Announces a batch to other relays, unless it has written nothing: a notice alone would cost a flush. */
const NOTIFY: BatchStep['prepared'] = {
  text: `SELECT pg_notify(current_schema(), $1 || (SELECT coalesce(max(n), 0) FROM delivery))
    WHERE pg_current_xact_id_if_assigned() IS NOT NULL`,
  name: 'relay_notify',
}

/** The SQL contract over connections to PostgreSQL. */
export function createPostgres({ writer, readers, name, holder }: EngineParts): Sql {
  const statements = new Statements()
  const queue = new WriteQueue(writer, statements, holder)
  const read = async (sql: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]> => {
    const steps = [{ prepared: statements.get(sql), values }]
    const [rows = []] = await withClient(readers, (client) => run(client, steps))
    return rows
  }
  const failWith = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      return await work
    } catch (error) {
      throw postgresError(error, name)
    }
  }
  return {
    async query<Row extends object>(sql: string, values: readonly SqlValue[] = []) {
      const rows = await failWith(
        read(sql, values).catch((error: unknown) => {
          if (isStalePlan(error)) return read(sql, values)
          throw error
        }),
      )
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
      return rows as readonly Row[]
    },
    transaction: (steps, options = {}) => failWith(queue.add(steps, options)),
    async usedBytes() {
      const [row] = await failWith(read(USED, []))
      return Number(row?.['bytes'])
    },
    // The server reuses free space by itself.
    shrink: () => Promise.resolve(false),
    async [Symbol.asyncDispose]() {
      await queue.close()
      await Promise.all([writer, readers].map(close))
    },
  }
}

/** The transactions that wait, and the one connection that commits them, those together that arrive during the last commit. */
class WriteQueue {
  readonly #writer: Pool
  readonly #statements: Statements
  readonly #holder: string
  #waiting: Waiting[] = []
  #bytes = 0
  #count = 0
  #committing: Promise<void> | undefined
  #closed = false

  constructor(writer: Pool, statements: Statements, holder: string) {
    this.#writer = writer
    this.#statements = statements
    this.#holder = holder
  }

  /** @throws what the driver throws, and PostgresFailure. */
  add(steps: readonly Step[], { onLate, announce }: TransactionOptions): Promise<Rows | undefined> {
    const bytes = sizeOf(steps)
    if (this.#closed) return Promise.reject(new PostgresFailure('closed'))
    if (this.#count >= MAX_WAITING || this.#bytes + bytes > MAX_WAITING_BYTES)
      return Promise.reject(new PostgresFailure('busy'))
    this.#count++
    this.#bytes += bytes
    return new Promise((resolve, reject) => {
      let late = false
      let settled = false
      const timer = setTimeout(() => {
        // One that was not sent is never done; of one that was sent, it is not known.
        late = !this.#withdraw(waiting)
        if (late) reject(new PostgresFailure('slow'))
        else settle({ error: new PostgresFailure('slow') })
      }, LIMIT_MS)
      const settle = (outcome: Outcome): void => {
        if (settled) return
        settled = true
        clearTimeout(timer)
        this.#count--
        this.#bytes -= bytes
        if ('error' in outcome) reject(outcome.error)
        else if (!late) resolve(outcome.rows)
        else if (outcome.rows) onLate?.(outcome.rows)
      }
      const waiting = { steps, bytes, announce, settle, isSettled: () => settled }
      this.#waiting.push(waiting)
      this.#committing ??= this.#commitAll()
    })
  }

  /** Finishes what waits. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#committing
  }

  #withdraw(waiting: Waiting): boolean {
    const at = this.#waiting.indexOf(waiting)
    if (at !== -1) this.#waiting.splice(at, 1)
    return at !== -1
  }

  async #commitAll(): Promise<void> {
    // All that arrive in this turn of the event loop share the commit.
    for (await setImmediate(); this.#waiting.length > 0; await setImmediate()) await this.#commit()
    this.#committing = undefined
  }

  /** Does not reject: a failure of the connection is the outcome of each transaction. */
  async #commit(): Promise<void> {
    let batch: readonly Waiting[] = []
    try {
      await withClient(this.#writer, async (client) => {
        batch = this.#next()
        await this.#send(client, batch)
      })
    } catch (error) {
      // Those that were sent by themselves before it are done.
      if (isStalePlan(error)) this.#waiting.unshift(...batch.filter(({ isSettled }) => !isSettled()))
      else for (const { settle } of batch.length > 0 ? batch : this.#next()) settle({ error })
    }
  }

  #next(): readonly Waiting[] {
    let bytes = 0
    const end = this.#waiting.findIndex(
      (each, i) => i === MAX_BATCH || (bytes += each.bytes) > MAX_BATCH_BYTES,
    )
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : Math.max(1, end))
  }

  /** If one of several transactions fails, nothing of the batch was done: each is then sent by itself. */
  async #send(client: PoolClient, batch: readonly Waiting[]): Promise<void> {
    const [first] = batch
    if (!first) return
    const steps = batch.flatMap(({ steps }) => steps.map((step) => this.#prepare(step)))
    try {
      const [, ...rows] = await run(client, [LOCK, ...steps, ...this.#notices(batch)])
      let at = 0
      for (const { steps, settle } of batch) settle({ rows: rows.slice(at, (at += steps.length)) })
    } catch (error) {
      if (!isOfTransaction(error)) throw error
      if (batch.length > 1) for (const each of batch) await this.#send(client, [each])
      else first.settle(codeOf(error) === NO_ROW ? { rows: undefined } : { error })
    }
  }

  /** One for the whole batch. */
  #notices(batch: readonly Waiting[]): readonly BatchStep[] {
    const announced = batch.filter(({ announce }) => announce !== undefined)
    if (announced.length === 0) return []
    const bytes = announced.reduce((sum, each) => sum + each.bytes, 0)
    const words = new Set(announced.flatMap(({ announce = [] }) => announce))
    return [{ prepared: NOTIFY, values: [journalPayload(this.#holder, bytes, [...words])] }]
  }

  #prepare({ sql, values = [], required }: Step): BatchStep {
    return { prepared: required ? this.#statements.required(sql) : this.#statements.get(sql), values }
  }
}

/** The rows of each statement; all are done in one transaction. @throws the driver's errors, and PostgresFailure `slow`. */
async function run(client: PoolClient, steps: readonly BatchStep[]): Promise<Rows> {
  const batch = client.query(new Batch(steps))
  let timer: NodeJS.Timeout | undefined
  const stuck = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PostgresFailure('slow')), STUCK_MS)
  })
  try {
    return await Promise.race([batch.done, stuck])
  } finally {
    clearTimeout(timer)
  }
}

/** Lends a connection to `work`, and closes it after a failure of the connection. */
async function withClient<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  if (pool.ending) throw new PostgresFailure('closed')
  const client = await pool.connect()
  let broken = true
  try {
    const result = await work(client)
    broken = false
    return result
  } catch (error) {
    broken = !isOfTransaction(error)
    throw error
  } finally {
    client.release(broken)
  }
}

async function close(pool: Pool): Promise<void> {
  if (!pool.ending) await pool.end()
}
