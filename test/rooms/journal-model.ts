import { type Filter, matchesFilter } from '../../src/journal/filter.js'
import {
  type Attempt,
  type Delivery,
  type Forward,
  type ForwardStatus,
  isFailedAttempt,
  type OnDuplicate,
  type Plan,
  type Summary,
} from '../../src/journal/types.js'
import type { Expiring } from '../../src/journal/write.js'

export interface ModelEntry {
  readonly n: number
  readonly delivery: Delivery
  readonly ignoredBy: string | undefined
  readonly forwards: Map<string, Forward>
  readonly attempts: Attempt[]
  duplicates: number
}

/** The rules by which a delivery that came again is forwarded, in words of their own. */
const AGAIN: Readonly<Record<OnDuplicate, (status: ForwardStatus | undefined) => boolean>> = {
  never: () => false,
  'if-failed': (status) => status === undefined || status === 'failed',
  always: (status) => status !== 'waiting',
}

/** What the journal is to be, in memory and without any index. */
export class Model {
  readonly entries = new Map<number, ModelEntry>()
  #newest = 0

  append(delivery: Delivery, plan: Plan) {
    const all = [...this.entries.values()]
    const same = all.find((entry) => keyOf(entry.delivery) === keyOf(delivery))
    const alike = all.filter((entry) => entry.delivery.deliveryId === delivery.deliveryId)
    const candidates = [...(same ? [same] : []), ...alike.filter((entry) => entry.delivery.hookId !== '')]
    const other = candidates.find((entry) => isOfAnotherHook(entry.delivery, delivery))
    const known = other ?? same
    if (!known) {
      const n = ++this.#newest
      const forward: Forward = { status: 'waiting', tries: 0, since: delivery.receivedAt }
      const forwards = new Map(plan.targets.map((target) => [target, forward]))
      const { ignoredBy } = plan
      this.entries.set(n, { n, delivery, ignoredBy, forwards, attempts: [], duplicates: 0 })
      return { n, duplicate: false, targets: [...forwards.keys()] }
    }
    known.duplicates++
    if (other) return { n: known.n, duplicate: true, targets: [] }
    const isSame = eventOf(known.delivery) === eventOf(delivery) && plan.ignoredBy === undefined
    if (isSame) wait(known, plan.targets, AGAIN[plan.onDuplicate], delivery.receivedAt)
    return { n: known.n, duplicate: true, targets: waitingOf(known) }
  }

  again(n: number, targets: readonly string[], rule: OnDuplicate, now: number): string[] | undefined {
    const entry = this.entries.get(n)
    if (!entry) return undefined
    const waits = (status: ForwardStatus | undefined): boolean => status === 'waiting' || AGAIN[rule](status)
    const known = rule === 'never' ? targets.filter((target) => entry.forwards.has(target)) : targets
    wait(entry, known, waits, now)
    return waitingOf(entry).filter((target) => targets.includes(target))
  }

  skip(n: number): string[] {
    const entry = this.entries.get(n)
    const targets = entry ? waitingOf(entry) : []
    for (const target of targets) {
      const { due: _, ...rest } = entry?.forwards.get(target) ?? { status: 'failed', tries: 0, since: 0 }
      entry?.forwards.set(target, { ...rest, status: 'failed', reason: 'skipped' })
    }
    return targets
  }

  record(n: number, attempt: Attempt, forward: Forward): void {
    const entry = this.entries.get(n)
    if (!entry?.forwards.has(attempt.target)) return
    // An attempt of a relay that stood still does not undo what ended meanwhile.
    const isEnded = entry.forwards.get(attempt.target)?.status !== 'waiting'
    if (!isEnded || forward.status === 'succeeded') entry.forwards.set(attempt.target, forward)
    const at = entry.attempts.findLastIndex(({ target }) => target === attempt.target)
    const last = entry.attempts[at]
    if (last?.at === attempt.at && last.outcome === attempt.outcome) return
    const isAlike = last?.outcome === attempt.outcome && last.error === attempt.error
    if (last && isAlike && ['unreachable', 'timed out'].includes(attempt.outcome))
      entry.attempts[at] = { ...attempt, count: last.count + attempt.count }
    else entry.attempts.push(attempt)
  }

  expire(before: number, which: Expiring): number {
    let count = 0
    for (const { forwards } of this.entries.values())
      for (const [target, forward] of forwards) {
        const isMeant = 'target' in which ? target === which.target : !which.except.includes(target)
        if (!isMeant || forward.status !== 'waiting' || forward.since >= before) continue
        const { due: _, ...rest } = forward
        forwards.set(target, { ...rest, status: 'failed', reason: 'older than 24 h' })
        count++
      }
    return count
  }

  sweep(keep: number, now: number): number {
    const end = this.#firstSince(now - keep, now) ?? this.#newest
    const old = [...this.entries.values()].filter(
      (entry) => entry.n < end && waitingOf(entry).length === 0 && entry.n < this.#newest,
    )
    for (const { n } of old) this.entries.delete(n)
    return old.length
  }

  /** As `select` gives them: newest first. */
  select(
    { since = -Infinity, until = Infinity, text, last, before = Infinity, ...filter }: Filter,
    now: number,
  ): number[] {
    const first = since === -Infinity ? 0 : (this.#firstSince(since, now) ?? Infinity)
    const end = until === Infinity ? Infinity : (this.#firstSince(until, now) ?? Infinity)
    const found = [...this.entries.values()].filter(
      ({ n, delivery, forwards }) =>
        n < before &&
        n >= first &&
        n < end &&
        matchesFilter({ ...delivery, forwards: Object.fromEntries(forwards) }, filter) &&
        (text === undefined ||
          Buffer.from(delivery.body).toString().toLowerCase().includes(text.toLowerCase())),
    )
    return found
      .map(({ n }) => n)
      .toReversed()
      .slice(0, last)
  }

  /** All that is known of the entries and their forwards, as a full count gives it. */
  view() {
    const all = [...this.entries.values()]
    const counts = new Map<string, Record<ForwardStatus, number>>()
    const minutes = new Map<number, { received: number; failed: number }>()
    for (const { delivery, forwards } of all) {
      const minute = Math.floor(delivery.receivedAt / 60_000)
      const counted = minutes.get(minute) ?? { received: 0, failed: 0 }
      minutes.set(minute, counted)
      counted.received++
      if ([...forwards.values()].some(isFailedAttempt)) counted.failed++
      for (const [target, { status }] of forwards) {
        const count = counts.get(target) ?? { waiting: 0, succeeded: 0, failed: 0 }
        counts.set(target, { ...count, [status]: count[status] + 1 })
      }
    }
    return {
      entries: all.map(({ n, delivery, ignoredBy, forwards, duplicates }): Summary => {
        const { body, ...rest } = delivery
        const ignored = ignoredBy === undefined ? {} : { ignoredBy }
        return {
          ...rest,
          n,
          duplicates,
          size: body.length,
          forwards: Object.fromEntries(forwards),
          ...ignored,
        }
      }),
      attempts: all.map(({ attempts }) => attempts),
      count: all.length,
      counts: [...counts].toSorted(byKey),
      minutes: [...minutes].toSorted(byKey).map(([minute, counted]) => ({ minute, ...counted })),
    }
  }

  /** What came later than a minute from now came while the clock was wrong. */
  #firstSince(instant: number, now: number): number | undefined {
    const isSince = ({ delivery: { receivedAt } }: ModelEntry): boolean =>
      receivedAt >= instant && receivedAt <= now + 60_000
    return [...this.entries.values()].find(isSince)?.n
  }

  waiting(target: string): ModelEntry[] {
    return [...this.entries.values()].filter(({ forwards }) => forwards.get(target)?.status === 'waiting')
  }
}

export function byKey(one: readonly [string | number, unknown], other: readonly [string | number, unknown]) {
  return one[0] < other[0] ? -1 : 1
}

function waitingOf({ forwards }: ModelEntry): string[] {
  return [...forwards].filter(([, { status }]) => status === 'waiting').map(([target]) => target)
}

function wait(
  { forwards }: ModelEntry,
  targets: readonly string[],
  isDue: (status: ForwardStatus | undefined) => boolean,
  since: number,
): void {
  for (const target of targets)
    if (isDue(forwards.get(target)?.status)) forwards.set(target, { status: 'waiting', tries: 0, since })
}

function eventOf({ event, action }: Delivery): string {
  return JSON.stringify([event, action])
}

/** Two deliveries with one key are the same. */
function keyOf(delivery: Delivery): string {
  const { deliveryId, restored } = delivery
  if (!restored) return JSON.stringify(['sent', deliveryId])
  if (restored.named) return JSON.stringify(['event', restored.sha256, eventOf(delivery)])
  return JSON.stringify(['bytes', restored.sha256, restored.repeatable ? deliveryId : ''])
}

function isOfAnotherHook(one: Delivery, other: Delivery): boolean {
  const isSame = eventOf(one) === eventOf(other) && one.repo === other.repo && one.number === other.number
  return isSame && one.hookId !== '' && other.hookId !== '' && one.hookId !== other.hookId
}
