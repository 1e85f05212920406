import { RelayError } from '../base/errors.js'
import { formatDuration } from '../base/time.js'
import { type Cancellable, deadline } from '../base/wait.js'
import { labelOf } from '../dispatch/routes.js'
import { type Filter, parseMatch } from '../journal/filter.js'
import type { Journal } from '../journal/journal.js'
import { type Attempt, type Entry, type ForwardStatus, numberText, type Summary } from '../journal/types.js'
import type { FoundEntry } from '../replay/entry.js'
import { readContent } from '../senders/content.js'
import type { Until, Watch } from './watch.js'

/** Filter for deliveries. Every given field must match. */
export interface DeliveryFilter {
  /** `push`, `issues.opened`, `issues.*`, `*.closed`, `stripe/invoice.*`; one of a list must match. Default: every event. */
  readonly event?: string | readonly string[]
  /** `owner/name`, case ignored. */
  readonly repo?: string
  /** Delivery id of the code host. */
  readonly deliveryId?: string
}

export interface WaitOptions extends Cancellable {
  /** Minimum number of deliveries. Default: 1. With 0, returns those present now. */
  readonly count?: number
  /** Milliseconds. Default: 4000. */
  readonly timeout?: number
  /** State that each target of the deliveries must reach. Default: `{ attempts: 1 }`. */
  readonly until?: Until
}

export interface NothingMoreOptions extends Cancellable {
  /** Milliseconds in which nothing may arrive. Default: 100. */
  readonly within?: number
}

/** A delivery that the relay accepted, and its attempts. */
export interface TestDelivery extends Entry {
  /** Parsed JSON of the delivery. */
  readonly payload: unknown
  /** Every attempt so far, oldest first. */
  readonly attempts: readonly TestAttempt[]
  /** Its targets, in the order of their names. Empty if no route matches. */
  readonly targets: readonly TestTarget[]
}

/** Where a delivery is at one of its targets. */
export interface TestTarget {
  /** As in {@link TestAttempt.target}. */
  readonly target: string
  /** `waiting` for the first attempt, or for another one. `failed` is final. */
  readonly status: ForwardStatus
  readonly attempts: readonly TestAttempt[]
}

export interface TestAttempt {
  /** URL or command, with its match unless that is `*`. */
  readonly target: string
  readonly outcome: Attempt['outcome']
  /** HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** Start of the target's response or output, at most 4096 bytes. */
  readonly answer: string
  /** Reason of a failure without a status. */
  readonly error: string | null
}

/** Shorter than the usual 5 s of test frameworks, so that this error appears and not theirs. */
const TIMEOUT_MS = 4000
/** Long enough for a program that answers and then acts at once. Each use costs it. */
const NOTHING_MS = 100
/** Number of deliveries listed in an error. */
const MAX_LISTED = 10

/** Goal of a wait. */
interface Goal {
  /** Formatted, after the number of deliveries. */
  readonly name: string
  /** Reads the deliveries that there are. */
  readonly find: () => Promise<Summary[]>
  /** Resolves at the next change that can matter. */
  readonly next: (signal: AbortSignal) => Promise<void>
}

/** The waits of a test for deliveries of one relay. */
export class Waits {
  readonly #journal: Journal
  readonly #watch: Watch
  /** Numbers of the deliveries that were returned. */
  readonly #returned = new Set<number>()

  constructor(journal: Journal, watch: Watch) {
    this.#journal = journal
    this.#watch = watch
  }

  /** Waits for matching deliveries. @throws RelayError as `TestRelay.deliveries` */
  async deliveries(wanted: DeliveryFilter, options: WaitOptions): Promise<TestDelivery[]> {
    const filter = filterOf(wanted)
    return this.#reached(options, {
      name: textOf(wanted),
      find: () => this.#matching(filter, wanted.deliveryId),
      next: (signal) => this.#watch.next(signal),
    })
  }

  /**
   * Waits for one delivery, by its number: many can wait at once, since each wakes and reads only for its own.
   * @throws RelayError as `TestRelay.deliveries`
   */
  async delivery(
    { n, delivery: deliveryId }: FoundEntry,
    options: Omit<WaitOptions, 'count'>,
  ): Promise<TestDelivery | undefined> {
    const [delivery] = await this.#reached(options, {
      name: textOf({ deliveryId }),
      find: async () => [...(await this.#journal.summaries([n]))],
      next: (signal) => this.#watch.next(signal, n),
    })
    return delivery
  }

  async #reached(
    { count = 1, timeout = TIMEOUT_MS, until = { attempts: 1 }, signal }: WaitOptions,
    { name, find, next }: Goal,
  ): Promise<TestDelivery[]> {
    signal?.throwIfAborted()
    const limited = deadline(timeout, signal)
    for (;;) {
      // Called before the journal is read, so that no change is missed.
      const changed = next(limited)
      changed.catch(() => {})
      await this.#journal.flush()
      const found = await find()
      const isReady =
        found.length >= count && found.every((each) => this.#watch.waiting(each, until).length === 0)
      if (isReady || count === 0) return this.#describe(found)
      await changed.catch(async (error: unknown) => {
        signal?.throwIfAborted()
        if (!limited.aborted) throw error
        const newest = await this.#matching({ last: MAX_LISTED }, undefined)
        const arrived = await Promise.all(newest.map((each) => this.#stateOf(each, until)))
        const what = `${count} ${wordsOf(until).what}${name}`
        throw new RelayError(
          'timed_out',
          `Waited ${formatDuration(timeout)} for ${what}, got ${found.length}. Received: ${arrived.join('; ') || 'none'}`,
        )
      })
    }
  }

  /** Waits, and fails if a delivery arrives that was not returned yet. @throws RelayError as `TestRelay.nothingMore` */
  async nothing(wanted: DeliveryFilter, { within = NOTHING_MS, signal }: NothingMoreOptions): Promise<void> {
    const filter = filterOf(wanted)
    const limited = deadline(within, signal)
    for (;;) {
      const changed = this.#watch.next(limited)
      changed.catch(() => {})
      await this.#journal.flush()
      const found = await this.#matching(filter, wanted.deliveryId)
      const more = found.filter(({ n }) => !this.#returned.has(n))
      if (more.length > 0) {
        const names = more.slice(0, MAX_LISTED).map(nameOf)
        throw new RelayError(
          'target_failed',
          `Nothing more${textOf(wanted)} was expected. Received: ${names.join('; ')}`,
        )
      }
      try {
        await changed
      } catch (error) {
        signal?.throwIfAborted()
        if (limited.aborted) return
        throw error
      }
    }
  }

  /**
   * Formats a delivery with the state of each target, if one is waited for:
   * `#1 push octo/demo, not yet settled at http://localhost:3000 (1 attempt, the last: 500), succeeded at cat`.
   */
  async #stateOf(summary: Summary, until: Until): Promise<string> {
    const pending = new Set(this.#watch.waiting(summary, until))
    if (pending.size === 0) return nameOf(summary)
    const all = await this.#journal.attempts(summary.n)
    const states = Object.entries(summary.forwards).map(([id, { status }]) => {
      const count = this.#watch.attemptsAt(summary.n, id)
      const last = all.findLast(({ target }) => target === id)
      const result = last?.error ?? last?.status ?? last?.outcome
      const tries = `${count} attempt${count === 1 ? '' : 's'}, the last: ${result}`
      const state = pending.has(labelOf(id)) ? wordsOf(until).missing : `${status} at`
      return `${state} ${labelOf(id)}${count === 0 || status === 'succeeded' ? '' : ` (${tries})`}`
    })
    return [nameOf(summary), ...states].join(', ')
  }

  /** Returns matching deliveries, oldest first. With an id, the search stops at the newest match. */
  async #matching(filter: Filter, id: string | undefined): Promise<Summary[]> {
    const found: Summary[] = []
    for await (const each of this.#journal.select(filter)) {
      if (id !== undefined && each.deliveryId !== id) continue
      found.push(each)
      if (id !== undefined) break
    }
    return found.toReversed()
  }

  /** Adds payload and attempts. Deliveries that retention has removed meanwhile are left out. */
  async #describe(found: readonly Summary[]): Promise<TestDelivery[]> {
    const deliveries: TestDelivery[] = []
    for (const { n, forwards } of found) {
      this.#returned.add(n)
      const [entry, all] = await Promise.all([this.#journal.read(n), this.#journal.attempts(n)])
      if (!entry) continue
      // A runner with a realm of its own (jest) does not find the arrays of native code equal to its own ones.
      const attempts = Array.from(all, ({ target, outcome, status, answer, error }): TestAttempt => {
        return { target: labelOf(target), outcome, status, answer: Buffer.from(answer).toString(), error }
      })
      const targets = Object.entries(forwards).map(([id, { status }]): TestTarget => {
        const target = labelOf(id)
        return { target, status, attempts: attempts.filter((attempt) => attempt.target === target) }
      })
      deliveries.push({ ...entry, payload: readContent(entry.body).value, attempts, targets })
    }
    return deliveries
  }
}

/** @throws RelayError `usage` for an invalid event */
function filterOf({ event = [], repo }: DeliveryFilter): Filter {
  return { events: [event].flat().map(parseMatch), ...(repo !== undefined && { repo }) }
}

/** Formats a filter: ` (issues, octo/demo)`, or an empty text. */
function textOf({ event = [], repo, deliveryId }: DeliveryFilter): string {
  const names = [[event].flat().join(' or '), repo, deliveryId].filter(Boolean)
  return names.length > 0 ? ` (${names.join(', ')})` : ''
}

/** Formats a delivery: `#1 issues.opened octo/demo#1`. */
function nameOf(summary: Summary): string {
  const { n, event, action, repo } = summary
  const place = repo === null ? '' : ` ${repo}${numberText(summary)}`
  return `#${n} ${event}${action === null ? '' : `.${action}`}${place}`
}

/** Names the goal of a wait: after a number of deliveries, and before the name of a target that has not reached it. */
function wordsOf(until: Until): { readonly what: string; readonly missing: string } {
  if (until === 'settled') return { what: 'settled', missing: 'not yet settled at' }
  if (until.attempts <= 1) return { what: 'forwarded', missing: 'not yet answered by' }
  const what = `attempted ${until.attempts} times`
  return { what, missing: `not yet ${what} at` }
}
