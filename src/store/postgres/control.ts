import type { ClientBase } from 'pg'
import type { LeaseListener, Notice } from '../leases.js'
import { PostgresFailure, postgresError } from './error.js'

/** How long connecting and a statement may take, in milliseconds: shorter than a relay may be silent. */
export const CONTROL_LIMIT_MS = 2000

export interface ControlParts {
  /** A new connection, which is not open yet. */
  readonly connect: () => ClientBase & { end(): Promise<void> }
  /** What it listens to. */
  readonly channel: string
  readonly holder: string
  /** The database's address without a password, for messages. */
  readonly name: string
}

type Client = ReturnType<ControlParts['connect']>

/**
 * The connection by which a relay renews its leases and listens to the others. It waits for no lock. After a failure the next
 * statement opens another one.
 */
export class ControlConnection implements AsyncDisposable {
  readonly #parts: ControlParts
  #listener: LeaseListener | undefined
  #client: Promise<Client> | undefined
  /** The same once it listens. */
  #open: Client | undefined
  #closed = false
  /** The driver takes one statement at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: ControlParts) {
    this.#parts = parts
  }

  listen(listener: LeaseListener): void {
    this.#listener = listener
  }

  /** @throws RelayError `storage` */
  rows<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const rows = this.#last.then(() => this.#rows<Row>(text, values))
    this.#last = rows.catch(() => {})
    return rows
  }

  async #rows<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    let client: Client | undefined
    try {
      if (this.#closed) throw new PostgresFailure('closed')
      client = await (this.#client ??= this.#connect())
      return (await inTime(client.query<Row>(text, [...values]))).rows
    } catch (error) {
      if (client) this.#drop(client)
      throw postgresError(error, this.#parts.name)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    const client = await this.#client?.catch(() => undefined)
    if (client) await end(client)
  }

  async #connect(): Promise<Client> {
    const client = this.#parts.connect()
    client.on('error', () => this.#drop(client))
    client.on('end', () => this.#drop(client))
    client.on('notification', ({ payload = '' }) => this.#heard(payload))
    try {
      await inTime(client.connect())
      // A beat that is lost with the server's memory is repeated a second later.
      await inTime(
        client.query(`SET synchronous_commit = off; LISTEN ${client.escapeIdentifier(this.#parts.channel)}`),
      )
    } catch (error) {
      this.#client = undefined
      void end(client)
      throw error
    }
    this.#open = client
    this.#listener?.onListening()
    return client
  }

  #drop(client: Client): void {
    if (this.#open === client) this.#client = this.#open = undefined
    void end(client)
  }

  #heard(payload: string): void {
    const [by, ...rest] = payload.split(' ')
    const notice = by === this.#parts.holder ? undefined : parseNotice(rest)
    if (notice) this.#listener?.onNotice(notice)
  }
}

/** What follows the holder in the payload of a notice about leases. */
export const LEASES = 'leases'
/** Words that take more bytes are left out: a payload has at most 8,000 (PostgreSQL 15, NOTIFY). */
const MAX_WORDS = 7000
const TOO_MANY = '*'

/** The payload of a notice about the journal, up to the number of the newest entry. */
export function journalPayload(holder: string, bytes: number, words: readonly string[]): string {
  const text = words.join(',')
  return `${holder} ${bytes} ${text.length > MAX_WORDS ? TOO_MANY : text} `
}

function parseNotice([first, words = '', newest]: readonly string[]): Notice | undefined {
  if (first === LEASES) return { kind: 'leases' }
  const numbers = { bytes: Number(first), newest: Number(newest) }
  if (!Number.isSafeInteger(numbers.bytes) || !Number.isSafeInteger(numbers.newest)) return undefined
  const list = words === '' ? [] : words.split(',')
  return { kind: 'journal', ...numbers, words: words === TOO_MANY ? undefined : list }
}

async function end(client: Client): Promise<void> {
  await client.end().catch(() => {})
}

/** @throws PostgresFailure `slow` */
async function inTime<Result>(work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const slow = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PostgresFailure('slow')), CONTROL_LIMIT_MS)
  })
  try {
    return await Promise.race([work, slow])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}
