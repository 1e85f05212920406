import { EventEmitter, once, setMaxListeners } from 'node:events'
import { RelayError } from '../base/errors.js'
import { labelOf } from '../dispatch/routes.js'
import type { RelayEvent } from '../events/events.js'
import type { Summary } from '../journal/types.js'

/**
 * How long a wait goes on for each target of a delivery: until a number of attempts since the delivery last arrived, or until
 * it has succeeded or failed for good, which ends the wait in any case.
 */
export type Until = 'settled' | { readonly attempts: number }

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

  onEvent(event: RelayEvent): void {
    if (event.type === 'delivery') {
      const { n, targets } = event.receipt
      for (const target of targets) this.#attempts.delete(`${n} ${target}`)
    } else if (event.type === 'attempt') {
      const { n, attempt } = event.attempt
      const key = `${n} ${attempt.target}`
      this.#attempts.set(key, (this.#attempts.get(key) ?? 0) + 1)
    } else return
    this.#changes.emit('change')
  }

  /** Labels of the targets for which an entry still waits. */
  waiting({ n, forwards }: Summary, until: Until): string[] {
    const wanted = until === 'settled' ? Infinity : until.attempts
    return Object.entries(forwards)
      .filter(([, { status }]) => status === 'waiting')
      .filter(([target]) => this.attemptsAt(n, target) < wanted)
      .map(([target]) => labelOf(target))
  }

  /** Resolves at the next delivery or attempt. @throws AbortError when `signal` aborts first; RelayError `cancelled` */
  /** Number of attempts at a target since the entry last arrived. */
  attemptsAt(n: number, target: string): number {
    return this.#attempts.get(`${n} ${target}`) ?? 0
  }

  async next(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#changes, 'change', { signal: AbortSignal.any([signal, this.#end.signal]) })
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

/** Keeps the process alive while a test waits, which nothing else of the kit does. */
export async function held<Result>(work: () => Promise<Result>): Promise<Result> {
  const hold = setInterval(() => {}, 2 ** 30)
  try {
    return await work()
  } finally {
    clearInterval(hold)
  }
}
