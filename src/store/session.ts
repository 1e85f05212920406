import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { Postgres } from './postgres.js'
import { codeOf, PostgresFailure, postgresError } from './postgres-error.js'
import type { RelayError } from '../base/errors.js'

/** What one of several relays does: forward, tunnel, keep hooks, remove old deliveries. */
const RUN = 'run'
/** A heartbeat and a claim of what is free, in one statement. Milliseconds. */
const BEAT_MS = 1000
/**
 * The server ends the session of a relay that stands still, and with it its locks. A relay whose last heartbeat was sent longer ago than
 * this, less a margin, does not know what it holds. The kernel of a stopped process keeps its connection alive, so that an advisory
 * lock alone would be no proof of life.
 */
const IDLE_MS = 4000
const VALID_MS = IDLE_MS - 500
/** The server ends a statement that takes longer; without its answer a little later, the connection is dead. Milliseconds. */
const ANSWER_MS = 2 * BEAT_MS
/** Between two tries to connect. */
const RETRY_MS = 500
const NEVER = { monotonic: -Infinity, wall: -Infinity }

export interface SessionListener {
  /** Another relay has changed these entries, or stored new ones; undefined: a break may have swallowed such a notice. */
  onNotice(numbers: readonly number[] | undefined): void
  /** This relay has the lock `run`, or another has it. */
  onRun(holds: boolean): void
  /** The database is away, and why; undefined: it is back. */
  onAway(error: RelayError | undefined): void
}

/**
 * One relay's session with the database: its membership of the profile's relays, and the lock `run`, which one of them holds. The locks
 * are the session's: they are free once it ends, whatever happened to the relay.
 */
export class Session implements AsyncDisposable {
  readonly #postgres: Postgres
  readonly #listener: SessionListener
  /** What all relays of the profile must have in common: a digest of their routes. */
  #routes: string
  readonly #stop = new AbortController()
  #client: Client | undefined
  #beating: Promise<void> | undefined
  #holds = false
  /** Whether the first claim was answered. */
  #isAnswered = false
  #wants = false
  /** When the last heartbeat that was answered was sent: by both clocks, since one stops while the machine sleeps, and the other can be set. */
  #sentAt = NEVER

  constructor(postgres: Postgres, routes: string, listener: SessionListener) {
    this.#postgres = postgres
    this.#routes = routes
    this.#listener = listener
  }

  /** Connects, and joins the other relays. @throws RelayError `storage` */
  async start(): Promise<void> {
    await this.#connect()
    this.#beating = this.#beat()
  }

  /** Claims the lock `run` from now on, whenever it is free. */
  want(): void {
    this.#wants = true
  }

  /** Whether this relay certainly has the lock `run` now. */
  get holds(): boolean {
    const { monotonic, wall } = this.#sentAt
    const age = Math.max(performance.now() - monotonic, Date.now() - wall)
    return this.#holds && age < VALID_MS
  }

  /** How many other relays the profile has, and whether one of them has other routes. @throws RelayError `storage` */
  async others(routes = this.#routes): Promise<{ readonly count: number; readonly isDifferent: boolean }> {
    try {
      const [row] = await this.#rows(OTHERS, [MEMBER, routesKey(routes)])
      return {
        count: Number(row?.['members']) - 1,
        isDifferent: Number(row?.['members']) > Number(row?.['same']),
      }
    } catch (error) {
      throw postgresError(error, this.#postgres.name)
    }
  }

  /** Changes what the relays must have in common. @throws RelayError `storage` */
  async changeRoutes(routes: string): Promise<void> {
    try {
      await this.#rows(`SELECT ${lock('pg_advisory_lock_shared')}, ${lock('pg_advisory_unlock_shared', 2)}`, [
        routesKey(routes),
        routesKey(this.#routes),
      ])
      this.#routes = routes
    } catch (error) {
      throw postgresError(error, this.#postgres.name)
    }
  }

  /** Gives the lock `run` back. Does not reject: it is free once the session has ended. */
  async release(): Promise<void> {
    this.#wants = false
    if (!this.#holds) return
    this.#holds = false
    await this.#rows(`SELECT ${lock('pg_advisory_unlock')}`, [RUN]).catch(() => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#beating
    await this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    try {
      // Tiny statements only: a session that is stopped while it receives a large result keeps its locks (measured).
      const settings = { idle_session_timeout: IDLE_MS, statement_timeout: ANSWER_MS }
      const client = await this.#postgres.connect(settings, ANSWER_MS + BEAT_MS)
      client.on('notification', ({ payload = '' }) => {
        const [id, ...numbers] = payload.split(' ')
        if (id !== this.#postgres.id) this.#listener.onNotice(numbers.filter(Boolean).map(Number))
      })
      this.#client = client
      // The server has freed the locks: another relay may send now.
      client.on('end', () => {
        if (this.#client === client) this.#sentAt = NEVER
      })
      const ours = [MEMBER, routesKey(this.#routes)]
      await this.#rows(
        `SELECT ${lock('pg_advisory_lock_shared')}, ${lock('pg_advisory_lock_shared', 2)}`,
        ours,
      )
      await this.#rows(`LISTEN ${client.escapeIdentifier(this.#postgres.schema)}`)
    } catch (error) {
      void this.#client?.end().catch(() => {})
      this.#client = undefined
      throw postgresError(error, this.#postgres.name)
    }
  }

  /** Does not reject. */
  async #beat(): Promise<void> {
    const { signal } = this.#stop
    let isAway = false
    while (!signal.aborted) {
      const sent = { monotonic: performance.now(), wall: Date.now() }
      try {
        const isNew = !this.#client
        if (isNew) await this.#connect()
        // A lock that is asked for twice must be released twice; a new session has none.
        const claims = this.#wants && (!this.#holds || isNew)
        const [row] = await this.#rows(
          claims ? `SELECT ${lock('pg_try_advisory_lock')} AS run` : 'SELECT 1 AS run',
          claims ? [RUN] : [],
        )
        this.#sentAt = sent
        if (isAway) this.#listener.onAway(undefined)
        isAway = false
        // After a break in which no other relay has taken it, what is under way goes on.
        if (claims) this.#claimed(row?.['run'] === 1)
        // What was notified meanwhile is lost.
        if (isNew) this.#listener.onNotice(undefined)
      } catch (error) {
        this.#client = undefined
        this.#sentAt = NEVER
        if (!isAway && !signal.aborted) this.#listener.onAway(postgresError(error, this.#postgres.name))
        isAway = true
      }
      const wait = isAway ? RETRY_MS : BEAT_MS
      await sleep(wait, undefined, { signal }).catch(() => {})
    }
  }

  #claimed(holds: boolean): void {
    if (this.#isAnswered && holds === this.#holds) return
    this.#isAnswered = true
    this.#holds = holds
    this.#listener.onRun(holds)
  }

  async #rows(sql: string, values: readonly string[] = []): Promise<readonly Record<string, unknown>[]> {
    const client = this.#client
    if (!client) throw new PostgresFailure('ECONNRESET')
    try {
      return (await client.query(sql, [...values])).rows
    } catch (error) {
      if (codeOf(error) === 'unknown' || codeOf(error).startsWith('57')) void client.end().catch(() => {})
      throw error
    }
  }
}

const MEMBER = 'member'

function routesKey(routes: string): string {
  return `routes ${routes}`
}

/** The key space is the database's: each lock is the profile's own, by its schema. */
function lock(call: string, parameter = 1): string {
  return `${call}(hashtextextended(current_schema() || ' ' || $${parameter}, 0))`
}

/** Those who hold the shared lock of members, and that of the routes. */
const OTHERS = `SELECT
  (SELECT count(*) FROM pg_locks WHERE ${isLock(1)}) AS members,
  (SELECT count(*) FROM pg_locks WHERE ${isLock(2)}) AS same`

function isLock(parameter: number): string {
  return `locktype = 'advisory' AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended(current_schema() || ' ' || $${parameter}, 0)`
}
