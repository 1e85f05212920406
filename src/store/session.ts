import { setTimeout as sleep } from 'node:timers/promises'
import type { RelayError } from '../base/errors.js'
import type { Postgres } from './postgres.js'
import { postgresError, postgresFailure } from './postgres-error.js'
import { isLock, lock, MEMBER, RUN } from './postgres-locks.js'
import { requireVersion } from './postgres-schema.js'
import type { PostgresClient } from './postgres-server.js'

/** Interval of the heartbeat, which also claims a free lock. Milliseconds. */
const BEAT_MS = 1000
/**
 * Time after which the server ends the session of a relay that is suspended, and so frees its locks. A lock alone is no
 * proof of life, because the kernel keeps the connection of a stopped process alive. A relay whose last heartbeat is
 * older than this, less a margin, does not know which locks it holds.
 */
const IDLE_MS = 4000
const VALID_MS = IDLE_MS - 500
/** Server-side limit of a statement. Without an answer a little later, the connection is dead. Milliseconds. */
const ANSWER_MS = 2 * BEAT_MS
/** Delay between attempts to connect. */
const RETRY_MS = 500

export interface SessionListener {
  /**
   * Called when another relay has changed these entries, or stored new ones. Undefined: a notice may have been lost
   * while disconnected.
   */
  onNotice(numbers: readonly number[] | undefined): void
  /** Called when this relay gets the lock `run`, or another one has it. */
  onRun(holds: boolean): void
  /** Called with the reason when the database becomes unreachable, and with undefined when it is back. */
  onAway(error: RelayError | undefined): void
}

/**
 * One relay's session with the database: its membership among the profile's relays, and the lock `run`, which one of
 * them holds. The locks belong to the session, so they are free once it ends, whatever happened to the relay.
 */
export class RelaySession implements AsyncDisposable {
  readonly #postgres: Postgres
  readonly #listener: SessionListener
  /** Digest of the routes, which all relays of the profile must have in common. */
  #routes: string
  readonly #stop = new AbortController()
  #client: PostgresClient | undefined
  #beating: Promise<void> | undefined
  /** True if the last claim got the lock. Undefined until the first claim is answered. */
  #holds: boolean | undefined
  #wants = false
  /**
   * Time at which the last answered heartbeat was sent, by both clocks: one stops while the machine sleeps, and the
   * other can be set.
   */
  #sentAt: { readonly monotonic: number; readonly wall: number } | undefined

  constructor(postgres: Postgres, routes: string, listener: SessionListener) {
    this.#postgres = postgres
    this.#routes = routes
    this.#listener = listener
  }

  /** Connects, and joins the other relays. @throws RelayError `storage` */
  async start(): Promise<void> {
    await this.#named(() => this.#connect())
    this.#beating = this.#beat()
  }

  /** Claims the lock `run` from now on, whenever it is free. */
  want(): void {
    this.#wants = true
  }

  /** True if this relay certainly has the lock `run` now. */
  get holds(): boolean {
    if (!this.#holds || !this.#sentAt) return false
    const { monotonic, wall } = this.#sentAt
    return Math.max(performance.now() - monotonic, Date.now() - wall) < VALID_MS
  }

  /** Counts the profile's other relays, and checks whether one has other routes. @throws RelayError `storage` */
  async others(routes = this.#routes): Promise<{ readonly count: number; readonly isDifferent: boolean }> {
    const { members = 1, same = 1 } = await this.#named(() => this.#row(OTHERS, MEMBER, routesKey(routes)))
    return { count: members - 1, isDifferent: members > same }
  }

  /** Changes the routes that the relays must have in common. @throws RelayError `storage` */
  async changeRoutes(routes: string): Promise<void> {
    const change = `SELECT ${lock('pg_advisory_lock_shared')}, ${lock('pg_advisory_unlock_shared', 2)}`
    await this.#named(() => this.#row(change, routesKey(routes), routesKey(this.#routes)))
    this.#routes = routes
  }

  /** Releases the lock `run`. Does not reject, since the lock is free once the session has ended. */
  async release(): Promise<void> {
    this.#wants = false
    if (!this.#holds) return
    this.#holds = false
    await this.#row(`SELECT ${lock('pg_advisory_unlock')}`, RUN).catch(() => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#beating
    // Not awaited, since a broken network would delay the end.
    void this.#client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    // The session sends only tiny statements: one that is suspended while it receives a large result keeps its locks
    // (measured).
    const settings = { idle_session_timeout: IDLE_MS, statement_timeout: ANSWER_MS }
    const client = await this.#postgres.connect(settings, ANSWER_MS + BEAT_MS)
    client.on('notification', ({ payload = '' }) => {
      const [id, ...numbers] = payload.split(' ')
      if (id !== this.#postgres.id) this.#listener.onNotice(numbers.filter(Boolean).map(Number))
    })
    this.#client = client
    // The server has freed the locks, so another relay may send now.
    client.on('end', () => {
      if (this.#client === client) this.#sentAt = undefined
    })
    const join = `SELECT ${lock('pg_advisory_lock_shared')}, ${lock('pg_advisory_lock_shared', 2)}`
    await this.#row(join, MEMBER, routesKey(this.#routes))
    // Nothing is migrated while a relay has this lock, but a newer relay may have migrated before, or while
    // disconnected.
    await this.#row(requireVersion())
    await this.#row(`LISTEN ${client.escapeIdentifier(this.#postgres.schema)}`)
  }

  /** Sends heartbeats until the session ends. Does not reject. */
  async #beat(): Promise<void> {
    const { signal } = this.#stop
    let isAway = false
    while (!signal.aborted) {
      const sent = { monotonic: performance.now(), wall: Date.now() }
      try {
        const isNew = !this.#client
        if (isNew) await this.#connect()
        // A lock that was acquired twice must be released twice. A new session has none.
        const claims = this.#wants && (!this.#holds || isNew)
        const { run } = claims
          ? await this.#row(`SELECT ${lock('pg_try_advisory_lock')} AS run`, RUN)
          : await this.#row('SELECT 1 AS run')
        this.#sentAt = sent
        if (isAway) this.#listener.onAway(undefined)
        isAway = false
        // If no other relay took the lock during an interruption, work in progress continues.
        if (claims) this.#claimed(run === 1)
        // Notices sent while disconnected are lost.
        if (isNew) this.#listener.onNotice(undefined)
      } catch (error) {
        void this.#client?.end().catch(() => {})
        this.#client = undefined
        this.#sentAt = undefined
        if (!isAway && !signal.aborted) this.#listener.onAway(postgresError(error, this.#postgres))
        isAway = true
      }
      await sleep(isAway ? RETRY_MS : BEAT_MS, undefined, { signal }).catch(() => {})
    }
  }

  #claimed(holds: boolean): void {
    if (holds === this.#holds) return
    this.#holds = holds
    this.#listener.onRun(holds)
  }

  async #row(sql: string, ...values: string[]): Promise<Record<string, number>> {
    if (!this.#client) throw postgresFailure('ECONNRESET')
    const { rows } = await this.#client.query<Record<string, number>>(sql, values)
    return rows[0] ?? {}
  }

  async #named<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw postgresError(error, this.#postgres)
    }
  }
}

function routesKey(routes: string): string {
  return `routes ${routes}`
}

/** Counts the holders of the shared locks of members and of these routes. */
const OTHERS = `SELECT
  (SELECT count(*) FROM pg_locks WHERE ${isLock(1)}) AS members,
  (SELECT count(*) FROM pg_locks WHERE ${isLock(2)}) AS same`
