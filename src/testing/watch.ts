import { EventEmitter, once, setMaxListeners } from 'node:events'
import { RelayError } from '../base/errors.js'
import { MAX_TIMER_MS } from '../base/wait.js'
import { labelOf } from '../dispatch/routes.js'
import type { Attempt, Receipt, Summary } from '../journal/types.js'

/**
 * End of a wait for each target of a delivery: after a number of attempts since the delivery last arrived, or once it has
 * succeeded or failed for good, which ends the wait in any case.
 */
export type Until = 'settled' | { readonly attempts: number }

/** Name of the change of any delivery. The others are numbers. */
const ANY = 'any'

/** Wakes waiting tests at each delivery and attempt, and counts the attempts. */
export class Watch {
  readonly #changes = new EventEmitter()
  readonly #end = new AbortController()
  /** Attempts by `n target` since the entry last arrived: a duplicate is attempted again. */
  readonly #attempts = new Map<string, number>()

  constructor() {
    // A test may wait for any number of deliveries at once.
    setMaxListeners(0, this.#changes, this.#end.signal)
  }

  /** @param targets those to which the delivery is forwarded */
  delivered({ n, targets }: Pick<Receipt, 'n' | 'targets'>): void {
    for (const target of targets) this.#attempts.delete(`${n} ${target}`)
    this.#change(n)
  }

  attempted(n: number, { target }: Pick<Attempt, 'target'>): void {
    const key = `${n} ${target}`
    this.#attempts.set(key, (this.#attempts.get(key) ?? 0) + 1)
    this.#change(n)
  }

  #change(n: number): void {
    this.#changes.emit(ANY)
    this.#changes.emit(String(n))
  }

  /** Labels of the targets for which an entry still waits. */
  waiting({ n, forwards }: Summary, until: Until): string[] {
    const wanted = until === 'settled' ? Infinity : until.attempts
    return Object.entries(forwards)
      .filter(([, { status }]) => status === 'waiting')
      .filter(([target]) => this.attemptsAt(n, target) < wanted)
      .map(([target]) => labelOf(target))
  }

  /** Number of attempts at a target since the entry last arrived. */
  attemptsAt(n: number, target: string): number {
    return this.#attempts.get(`${n} ${target}`) ?? 0
  }

  /**
   * Resolves at the next delivery or attempt, of any delivery or of one.
   * @param n number of the one
   * @throws AbortError when `signal` aborts first; RelayError `cancelled`
   */
  async next(signal: AbortSignal, n?: number): Promise<void> {
    try {
      await once(this.#changes, n === undefined ? ANY : String(n), {
        signal: AbortSignal.any([signal, this.#end.signal]),
      })
    } catch (error) {
      this.#end.signal.throwIfAborted()
      throw error
    }
  }

  /** Ends all waits: the relay has stopped. */
  end(): void {
    this.#end.abort(new RelayError('cancelled', 'The relay stopped while a test waited for a delivery'))
  }
}

/**
 * Starts `work`, and keeps the process alive once something waits for the returned promise. Nothing else in the kit keeps
 * it alive, so that a wait which a failed test has left does not continue. What `work` throws at once is a rejection, too.
 */
export function held<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = startNow(work)
  class HeldPromise extends Promise<Result> {
    // Read by `then`, which `await` calls on a promise of a class of its own: something waits now.
    static override get [Symbol.species](): PromiseConstructor {
      hold(result)
      return Promise
    }
  }
  return new HeldPromise((resolve) => resolve(result))
}

async function startNow<Result>(work: () => Promise<Result>): Promise<Result> {
  return work()
}

/** Keeps the process alive until a promise is settled. */
function hold(result: Promise<unknown>): void {
  const timer = setInterval(() => {}, MAX_TIMER_MS)
  const release = (): void => clearInterval(timer)
  result.then(release, release)
}
