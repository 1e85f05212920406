import type { Decision, RowWrite, Transaction } from './engine.js'

/** Enough that a burst shares a flush, few enough that applying them does not hold the event loop for long. */
const MOST = 64

export interface GroupParts {
  /** Runs `work` while nobody else, in no process, can write; resolves when durable. When `work` throws, nothing is written. */
  readonly transaction: (work: () => void) => Promise<void>
  /** Called within a transaction. */
  readonly apply: (writes: readonly RowWrite[]) => void
}

interface Member {
  /** Decides and applies. Throws when the rows cannot be written, not when the decision throws. */
  attempt(transaction: Transaction): void
  /** Tells its caller how it ended. */
  settle(): void
  fail(reason: unknown): void
}

/**
 * Makes the decisions that come in one turn of the event loop, and those that come while a transaction is under way, share
 * the next transaction and its flush. Each sees what those before it wrote. One that throws writes nothing and stops
 * nobody; one whose rows cannot be written fails alone.
 */
export function createGroup({ transaction, apply }: GroupParts) {
  let waiting: Member[] = []
  let running = false

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      const members = waiting.slice(0, MOST)
      waiting = waiting.slice(MOST)
      await carryOut(members)
    }
    running = false
  }

  async function carryOut(members: readonly Member[]): Promise<void> {
    let attempted = false
    try {
      await transaction(() => {
        const transaction = {}
        for (const member of members) member.attempt(transaction)
        attempted = true
      })
      for (const member of members) member.settle()
    } catch (reason) {
      if (!attempted && members.length > 1) for (const member of members) await carryOut([member])
      else for (const member of members) member.fail(reason)
    }
  }

  /** @throws what `decide` throws, what `apply` throws for its rows, and what `transaction` rejects with. */
  return function transact<T>(decide: (transaction: Transaction) => Decision<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let settle = (): void => {}
      const attempt = (transaction: Transaction): void => {
        let decision: Decision<T>
        try {
          decision = decide(transaction)
        } catch (thrown) {
          settle = () => reject(thrown)
          return
        }
        apply(decision.writes)
        settle = () => resolve(decision.result)
      }
      waiting.push({ attempt, settle: () => settle(), fail: reject })
      if (running) return
      running = true
      setImmediate(() => void run())
    })
  }
}
