import { randomInt } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Decision, RowWrite, Transaction } from './engine.js'
import { Pending } from './pending.js'

/** What tells one state of the data from every other; undefined before the first write. */
export type Version = number | undefined

export interface GroupParts {
  /** From here on reads see the newest state, whose version it gives. */
  readonly look: () => Version
  /**
   * Writes the rows, and `next` as the version, when the version is still `expected`; resolves, when durable, with whether it
   * was. Calls are carried out in their order.
   */
  readonly commit: (writes: readonly RowWrite[], expected: Version, next: number) => Promise<boolean>
  /** Calls `decide` while nobody else, in no process, can write, and writes what it gives; resolves when durable. */
  readonly exclude: (decide: () => readonly RowWrite[], next: number) => Promise<void>
  /** @throws when the row is none that can be written. */
  readonly check: (write: RowWrite) => void
}

/** One decision, and who waits for it. */
interface Member {
  /** @throws what `decide` throws, and what `check` throws for its rows. */
  decide(transaction: Transaction): readonly RowWrite[]
  /** Tells what was decided last. */
  settle(): void
  fail(reason: unknown): void
  /** How often it was decided in vain, since somebody else wrote meanwhile. */
  failures: number
}

interface Batch {
  readonly members: readonly Member[]
  readonly writes: RowWrite[]
}

/** Enough that a burst shares a flush, few enough that deciding them does not hold the event loop for long. */
const MOST = 64
/** While one is flushed, the next is already where it need not wait for the event loop. With more, each would be smaller. */
const UNDER_WAY = 2
/** When the disk hangs, what waits for it must not fill the memory: of deliveries of the usual size this is 30 MB. */
const MOST_WAITING = 4096
/** How often others may get ahead before they are kept out. */
const FAILURES = 3
const VERSIONS = 2 ** 48 - 1

/**
 * Makes the decisions that come in one turn of the event loop, and those that come while the disk is busy, share a commit
 * and its flush. Each sees what those before it wrote. One that throws writes nothing and stops nobody.
 *
 * Nobody is kept from writing meanwhile. What was decided is written only if nobody did, and is decided anew otherwise; only
 * where others get ahead again and again are they kept out.
 */
export class Group {
  readonly #parts: GroupParts
  readonly #pending = new Pending()
  readonly #underWay = new Set<object>()
  readonly #idle: (() => void)[] = []
  #waiting: Member[] = []
  /** To be decided anew, once nothing is under way that was decided after them. */
  #again: Member[] = []
  #transaction: Transaction = {}
  /** What the next commit expects; `outdated` when that has to be looked up. */
  #version: Version | 'outdated' = 'outdated'
  #isDeciding = false
  #isWoken = false

  constructor(parts: GroupParts) {
    this.#parts = parts
  }

  /** What reads have to take for written: within a decision, what those before it wrote. */
  get written(): Pending | undefined {
    return this.#isDeciding ? this.#pending : undefined
  }

  /**
   * @throws RelayError `storage` when {@link MOST_WAITING} wait already; what `decide` throws; what `check` throws for its
   * rows; what the commit rejects with.
   */
  transact<T>(decide: (transaction: Transaction) => Decision<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#waiting.length >= MOST_WAITING)
        throw new RelayError('storage', 'Too many writes wait for the disk')
      let settle = (): void => {}
      this.#waiting.push({
        decide: (transaction) => {
          try {
            const { result, writes } = decide(transaction)
            for (const write of writes) this.#parts.check(write)
            settle = () => resolve(result)
            return writes
          } catch (reason) {
            settle = () => reject(reason)
            return []
          }
        },
        settle: () => settle(),
        fail: reject,
        failures: 0,
      })
      this.#wake()
    })
  }

  /** Resolves when nothing waits or is under way. */
  async idle(): Promise<void> {
    if (this.#waiting.length + this.#underWay.size > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #wake(): void {
    if (this.#isWoken || !this.#mayStart()) return
    this.#isWoken = true
    setImmediate(() => this.#start())
  }

  #mayStart(): boolean {
    const most = this.#version === 'outdated' ? 1 : UNDER_WAY
    return this.#waiting.length > 0 && this.#underWay.size < most
  }

  #start(): void {
    this.#isWoken = false
    while (this.#mayStart()) {
      const members = this.#waiting.slice(0, MOST)
      const mustExclude = members.some(({ failures }) => failures >= FAILURES)
      if (mustExclude && this.#underWay.size > 0) return
      this.#waiting = this.#waiting.slice(MOST)
      void (mustExclude ? this.#exclude(members) : this.#commit(members))
    }
  }

  async #commit(members: readonly Member[]): Promise<void> {
    const isOnly = this.#underWay.size === 0
    const batch: Batch = { members, writes: [] }
    await this.#follow(batch, async () => {
      const version = this.#parts.look()
      // While another is under way the version is the one that it leaves behind.
      if (isOnly && version !== this.#version) this.#renew(version)
      const expected = this.#version === 'outdated' ? version : this.#version
      this.#decide(batch)
      if (isOnly && batch.writes.length === 0) return true
      const next = newVersion()
      this.#version = next
      return this.#parts.commit(batch.writes, expected, next)
    })
  }

  async #exclude(members: readonly Member[]): Promise<void> {
    const batch: Batch = { members, writes: [] }
    this.#version = 'outdated'
    await this.#follow(batch, async () => {
      const decide = (): readonly RowWrite[] => {
        this.#renew('outdated')
        this.#decide(batch)
        return batch.writes
      }
      await this.#parts.exclude(decide, newVersion())
      return true
    })
  }

  /** Somebody else has written: what was seen before is no longer so. */
  #renew(version: Version | 'outdated'): void {
    this.#version = version
    this.#transaction = {}
  }

  #decide({ members, writes }: Batch): void {
    this.#isDeciding = true
    for (const member of members) {
      const own = member.decide(this.#transaction)
      this.#pending.add(own)
      writes.push(...own)
    }
    this.#isDeciding = false
  }

  async #follow(batch: Batch, commit: () => Promise<boolean>): Promise<void> {
    this.#underWay.add(batch)
    try {
      if (await commit()) settle(batch)
      else this.#decideAgain(batch)
    } catch (reason) {
      // What was decided after it expects a version that never came.
      this.#version = 'outdated'
      for (const member of batch.members) member.fail(reason)
    }
    this.#pending.remove(batch.writes)
    this.#underWay.delete(batch)
    this.#goOn()
  }

  #decideAgain({ members }: Batch): void {
    this.#version = 'outdated'
    for (const member of members) member.failures++
    this.#again.push(...members)
  }

  #goOn(): void {
    if (this.#underWay.size === 0 && this.#again.length > 0) {
      this.#waiting = [...this.#again, ...this.#waiting]
      this.#again = []
    }
    this.#wake()
    if (this.#waiting.length + this.#underWay.size === 0) for (const tell of this.#idle.splice(0)) tell()
  }
}

function settle({ members }: Batch): void {
  for (const member of members) member.settle()
}

function newVersion(): number {
  return randomInt(VERSIONS)
}
