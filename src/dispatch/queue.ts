import type { Clock } from '../base/time.js'
import type { Journal } from '../journal/journal.js'
import type { DueForward } from '../journal/types.js'

/** Longest delay until a delivery is tried again: the longest that an answer may ask for, varied. Milliseconds. */
export const MAX_RETRY_AFTER_MS = 60_000
const MAX_DELAY_MS = 2 * MAX_RETRY_AFTER_MS

/** Result of asking for what is sent next. */
interface Next {
  readonly ready: readonly DueForward[]
  /** Milliseconds until the first delivery that is to be tried again, if none is ready. */
  readonly delay: number
  /** The delivery with strict order that is to be tried again, and when. */
  readonly heldBy?: { readonly n: number; readonly at: number }
}

interface TargetQueueOptions {
  readonly journal: Pick<Journal, 'next'>
  readonly clock: Clock
  /** True for strict order. */
  readonly ordered: boolean
}

/**
 * Queue of one target, which is the table of forwards. First attempts are in the order of arrival. A delivery that is to be
 * tried again has its own time; from then on it and the first attempts take turns, so that neither holds up the other. One
 * that was not answered goes after all first attempts, since each of its attempts may take a whole time limit.
 */
export class TargetQueue {
  readonly #id: string
  readonly #options: TargetQueueOptions
  #wasFirst = false

  constructor(id: string, options: TargetQueueOptions) {
    this.#id = id
    this.#options = options
  }

  /**
   * Reads at most `limit` deliveries to send now, without those in flight.
   * @param repeats when those to be tried again are sent: by turns if they were answered, after all first attempts, or not
   * now
   */
  async next(
    limit: number,
    inFlight: Iterable<number>,
    repeats: 'by turns' | 'last' | 'not now',
  ): Promise<Next> {
    const { journal, ordered } = this.#options
    const { first, again } = await journal.next(this.#id, { limit, except: inFlight, ordered })
    if (ordered) return this.#oldest([...first, ...again].toSorted((one, other) => one.n - other.n))
    const due = again.filter((each) => this.#delayOf(each) === 0)
    const byTurns = repeats === 'by turns' ? due.filter(({ isUnanswered }) => !isUnanswered) : []
    const others = repeats === 'not now' ? [] : due.filter((each) => !byTurns.includes(each))
    const rest = [...byTurns, ...others]
    const ready: DueForward[] = []
    for (let f = 0, r = 0; ready.length < limit && f + r < first.length + rest.length;) {
      const isTurn = this.#wasFirst && r < byTurns.length
      const takesFirst = f < first.length && !isTurn
      const next = takesFirst ? first[f++] : rest[r++]
      this.#wasFirst = takesFirst
      if (next) ready.push(next)
    }
    const later = again.filter((each) => !due.includes(each)).map((each) => this.#delayOf(each))
    return { ready, delay: Math.min(Infinity, ...later) }
  }

  /** The oldest delivery holds up the others, also until it is tried again. */
  #oldest([oldest]: readonly DueForward[]): Next {
    if (!oldest) return { ready: [], delay: Infinity }
    const delay = this.#delayOf(oldest)
    if (delay === 0) return { ready: [oldest], delay: Infinity }
    const { n, forward } = oldest
    return { ready: [], delay, heldBy: { n, at: forward.due ?? 0 } }
  }

  /** Milliseconds until a delivery may be sent. */
  #delayOf({ forward: { due = 0 } }: DueForward): number {
    const delay = due - this.#options.clock()
    // A longer one is left from before the clock was set back.
    return delay <= 0 || delay > MAX_DELAY_MS ? 0 : delay
  }
}
