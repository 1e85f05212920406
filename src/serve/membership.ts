import { hostname } from 'node:os'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { createInstanceRecord, type OwnFields } from '../instance/instance.js'
import { INSTANCE_FIELDS, type InstanceRecord, prove } from '../instance/record.js'
import type { Store } from '../store/contract.js'
import type { LeaseListener, LeaseRow, Leases, Notice } from '../store/leases.js'
import { SILENCE_MS } from '../store/leases.js'
import { isText, shape } from '../store/shape.js'
import type { Duties } from './duties.js'
import { LeaseKeeper, silentHolders } from './lease-keeper.js'

/** One of the relays that serve a profile together. Disposing of it leaves the service, and gives back what it does. */
export interface Membership extends AsyncDisposable {
  readonly record: InstanceRecord
  readonly prove: (challenge: string) => string
  readonly duties: Duties
  /** Aborts when this relay cannot be part of the service any more. The reason is a RelayError. */
  readonly lost: AbortSignal
  /** Has this relay act on other routes. @throws RelayError `settings` when other relays have others; `storage`. */
  changeRoutes(routes: readonly string[]): Promise<void>
  /** Whether other relays serve the profile, too. @throws RelayError `storage` */
  hasOthers(): Promise<boolean>
  /** Calls the listener for what other relays do, until it is disposed of. */
  subscribe(listener: LeaseListener): Disposable
}

export interface MembershipParts {
  readonly store: Store
  readonly leases: Leases
  readonly own: OwnFields
  readonly routes: readonly string[]
  /** Hides what is secret in a route. */
  readonly labelOf: (route: string) => string
  readonly log: Log
}

/** What a relay stores of itself, encrypted: routes can contain passwords. */
interface Member extends InstanceRecord {
  readonly host: string
  readonly routes: readonly string[]
}

const parseMember = shape<Member>({
  ...INSTANCE_FIELDS,
  host: isText,
  routes: (value) => Array.isArray(value) && value.every(isText),
})

/** The name of a relay's own lease, and the key of what it stores of itself. */
const INSTANCE = 'instance:'

/**
 * Joins the relays that serve a profile, or is the first of them.
 * @throws RelayError `settings` when relays that came before have other routes, naming the difference; `storage`.
 */
export async function joinService(parts: MembershipParts): Promise<Membership> {
  const member = new ServiceMember(parts)
  await member.join()
  return member
}

class ServiceMember implements Membership {
  readonly record: ReturnType<typeof createInstanceRecord>
  readonly duties: LeaseKeeper
  readonly #parts: MembershipParts
  readonly #name: string
  readonly #lost = new AbortController()
  readonly #listeners = new Set<LeaseListener>()
  #routes: readonly string[]
  #changing: Promise<void> = Promise.resolve()

  constructor(parts: MembershipParts) {
    this.#parts = parts
    this.#routes = parts.routes
    this.#name = INSTANCE + parts.leases.holder
    this.record = createInstanceRecord(parts.own, Date.now())
    this.duties = new LeaseKeeper({
      ...parts,
      ownName: this.#name,
      onBeat: (rows) => this.#onBeat(rows),
      onSilent: (holder) => this.#removeSilent(holder),
    })
    parts.leases.listen({
      onNotice: (notice) => this.#onNotice(notice),
      onListening: () => {
        for (const { onListening } of this.#listeners) onListening()
      },
    })
  }

  readonly prove = (challenge: string): string => prove(this.record, challenge)

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  async join(): Promise<void> {
    const { leases } = this.#parts
    try {
      for (const holder of silentHolders(await leases.beat(), leases.holder)) await this.#disconnect(holder)
      await this.#register()
      await this.#refuseDifference(await leases.beat())
      this.duties.start()
    } catch (error) {
      await this.#leave()
      throw error
    }
  }

  changeRoutes(routes: readonly string[]): Promise<void> {
    // One after the other: one that fails must not undo the next one.
    const changed = this.#changing.then(() => this.#changeRoutes(routes))
    this.#changing = changed.catch(() => {})
    return changed
  }

  async #changeRoutes(routes: readonly string[]): Promise<void> {
    const { leases } = this.#parts
    const before = this.#routes
    this.#routes = routes
    try {
      await this.#refuseDifference(await leases.beat(), Infinity)
      await this.#store()
      // One that has joined meanwhile may have read the routes from before.
      await this.#refuseDifference(await leases.beat(), Infinity)
    } catch (error) {
      this.#routes = before
      await this.#store().catch(() => {})
      throw error
    }
  }

  async hasOthers(): Promise<boolean> {
    return (await this.#parts.leases.beat()).some((row) => this.#isOther(row))
  }

  subscribe(listener: LeaseListener): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.duties[Symbol.asyncDispose]()
    await this.#leave()
  }

  /** The record first: who has the lease has one. */
  async #register(): Promise<void> {
    await this.#store()
    await this.#parts.leases.claim([this.#name])
  }

  async #store(): Promise<void> {
    const { store } = this.#parts
    await store.put(this.#name, { ...this.record, host: hostname(), routes: this.#routes })
  }

  /** Best effort: otherwise another relay removes it. */
  async #leave(): Promise<void> {
    const { store, leases } = this.#parts
    await Promise.allSettled([leases.forget([this.#name]), store.delete(this.#name)])
  }

  /** A relay that was silent was removed by another one. It joins again. */
  async #onBeat(rows: readonly LeaseRow[]): Promise<void> {
    if (rows.some(({ name, held }) => held && name === this.#name)) return
    await this.#register()
    const now = await this.#parts.leases.beat()
    await this.#refuseDifference(now).catch((error: unknown) => {
      if (error instanceof RelayError && error.kind === 'settings') this.#lost.abort(error)
      throw error
    })
  }

  /** First its connections: one of them may have the lock without which no other relay can write. */
  async #removeSilent(holder: string): Promise<void> {
    const { leases, store } = this.#parts
    const name = INSTANCE + holder
    await this.#disconnect(holder)
    // Before the lease: one that comes back without its lease stores its record again.
    const record = await store.take(name)
    await leases.forget([name])
    if (record === undefined) return
    // One that came back before that has kept its lease.
    const rows = await leases.beat()
    if (rows.some((row) => row.name === name)) await store.putIfAbsent(name, record)
  }

  async #disconnect(holder: string): Promise<void> {
    const { leases, log } = this.#parts
    await leases.disconnect(holder).catch((error: unknown) => {
      log.warn(`The connections of a silent relay could not be ended: ${toRelayError(error).message}`)
    })
  }

  #onNotice(notice: Notice): void {
    if (notice.kind === 'leases') this.duties.wake()
    for (const { onNotice } of this.#listeners) onNotice(notice)
  }

  /** Compares with the relays that came before the epoch. @throws RelayError `settings`, `storage` */
  async #refuseDifference(rows: readonly LeaseRow[], before = this.#epochIn(rows)): Promise<void> {
    const { store, labelOf } = this.#parts
    for (const row of rows) {
      const { name, epoch } = row
      if (!this.#isOther(row) || epoch >= before) continue
      const other = parseMember(await store.get(name))
      const difference = other && differenceOf(other.routes, this.#routes, labelOf)
      if (!difference) continue
      throw new RelayError(
        'settings',
        `Process ${other.pid} on ${other.host}, at ${other.url}, serves this profile with other routes: ${difference}. All relays of a profile need the same routes`,
      )
    }
  }

  /** Whether it is the lease of another relay that lives. */
  #isOther({ name, silent }: LeaseRow): boolean {
    return name.startsWith(INSTANCE) && name !== this.#name && silent <= SILENCE_MS
  }

  #epochIn(rows: readonly LeaseRow[]): number {
    return rows.find(({ name }) => name === this.#name)?.epoch ?? Infinity
  }
}

/** `only there: push=…; only here: …`; undefined where there is none. */
function differenceOf(
  there: readonly string[],
  here: readonly string[],
  labelOf: (route: string) => string,
): string | undefined {
  const only = (which: string, some: readonly string[], others: readonly string[]): readonly string[] => {
    const left = some.filter((route) => !others.includes(route)).map(labelOf)
    return left.length === 0 ? [] : [`only ${which}: ${left.join(', ')}`]
  }
  const parts = [...only('there', there, here), ...only('here', here, there)]
  return parts.length === 0 ? undefined : parts.join('; ')
}
