import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DeliveryLine, DeliveryPage, ListQuery } from '../../src/inspector/api.js'
import {
  EMPTY_LIST,
  type ListEvent,
  type ListState,
  MAX_LINES,
  type Reading,
  reduce,
} from '../../src/inspector/page/list-state.js'
import { same } from './same.js'

function line(n: number, more: Partial<DeliveryLine> = {}): DeliveryLine {
  const fixed = { receivedAt: 0, action: null, repo: 'octo/demo', size: 2, subject: null, targets: [] }
  return { n, event: 'push', duplicates: 0, ...fixed, ...more }
}

const EVENTS = ['push', 'issues'] as const
const numbersOf = (lines: readonly DeliveryLine[]): number[] => lines.map(({ n }) => n)

/** Lines of a first page, and of the others. */
const SIZES = { open: 3, again: 3, more: 4 }
/** Deliveries that a search looks at before it stops. */
const SEARCHED = 5

/** A running relay as the inspector's page sees it: what it has, what its stream is about to say, and the answers that are on their way. */
class Instance {
  readonly #entries = new Map<number, DeliveryLine>()
  #newest = 0
  /** What has changed since the stream said so. */
  readonly #due = new Map<number | 'removed', number>()
  #stream: ListEvent[] = []
  readonly #answers: { readonly reading: Reading; page?: DeliveryPage }[] = []
  state: ListState = EMPTY_LIST

  dispatch(event: ListEvent): void {
    const before = this.state
    const text = JSON.stringify(before)
    this.state = reduce(before, event)
    same(JSON.stringify(before), text)
    const { reading, lines } = this.state
    if (reading && reading !== before.reading) this.#answers.push({ reading })
    const numbers = numbersOf(lines)
    same(
      numbers,
      [...new Set(numbers)].toSorted((one, other) => other - one),
    )
    if (lines.length > MAX_LINES + SIZES.more) throw new Error(`${lines.length} lines`)
  }

  arrive(event: string): void {
    this.#entries.set(++this.#newest, line(this.#newest, { event }))
    this.#due.set(this.#newest, this.#newest)
  }

  /** It arrives again, or becomes one that another filter finds. */
  change(place: number, event: string | undefined): void {
    const found = [...this.#entries.values()][place % Math.max(1, this.#entries.size)]
    if (!found) return
    const changed = { ...found, duplicates: found.duplicates + 1, event: event ?? found.event }
    this.#entries.set(found.n, changed)
    this.#due.set(found.n, found.n)
  }

  remove(count: number): void {
    // The newest stays.
    for (const n of [...this.#entries.keys()].slice(0, Math.min(count, this.#entries.size - 1)))
      this.#entries.delete(n)
    this.#due.set('removed', [...this.#entries.keys()][0] ?? 0)
  }

  /** Puts into the stream what has changed. */
  flush(): void {
    const removed = this.#due.get('removed')
    this.#due.delete('removed')
    const lines = [...this.#due.values()]
      .toSorted((one, other) => one - other)
      .flatMap((n) => this.#entries.get(n) ?? [])
    this.#due.clear()
    if (lines.length > 0) this.#stream.push({ type: 'lines', lines })
    if (removed !== undefined) this.#stream.push({ type: 'removed', below: removed })
  }

  /** The page reads from the stream. */
  hear(): void {
    const event = this.#stream.shift()
    if (event) this.dispatch(event)
  }

  /** The stream breaks, and the page opens another. */
  reconnect(): void {
    this.#due.clear()
    this.#stream = []
    this.dispatch({ type: 'stale' })
  }

  /** Makes an answer, which is still on its way. */
  answer(place: number): void {
    const waiting = this.#answers.filter(({ page }) => page === undefined)
    const chosen = waiting[place % Math.max(1, waiting.length)]
    if (chosen) chosen.page = this.pageOf(chosen.reading)
  }

  /** An answer arrives, also one that is no longer waited for. */
  deliver(place: number): void {
    const [chosen] = this.#answers.splice(place % Math.max(1, this.#answers.length), 1)
    if (!chosen) return
    const { reading, page = this.pageOf(reading) } = chosen
    this.dispatch({ type: 'read', id: reading.id, page })
  }

  fail(isRefused: boolean): void {
    const chosen = this.#answers.shift()
    if (chosen) this.dispatch({ type: 'failed', id: chosen.reading.id, problem: 'no', isRefused })
  }

  has(n: number): boolean {
    return this.#entries.has(n)
  }

  pageOf({ kind, query }: Pick<Reading, 'kind' | 'query'>): DeliveryPage {
    const size = SIZES[kind]
    const before = Number(query.before ?? this.#newest + 1)
    const all = [...this.#entries.values()].toReversed().filter(({ n }) => n < before)
    const searched = query.text ? all.slice(0, SEARCHED) : all
    const found = searched.filter((each) => passes(each, query)).slice(0, size)
    const last = searched.at(-1)?.n ?? 0
    const isStopped = found.length < size && searched.length < all.length
    return {
      deliveries: found,
      next: found.length < size ? null : (found.at(-1)?.n ?? null),
      ...(isStopped && { stopped: { read: before - last, before: last } }),
    }
  }

  /** Lets all arrive that is on its way, with the user at the top. */
  settle(): void {
    const all = (): void => {
      this.flush()
      while (this.#stream.length > 0) this.hear()
      while (this.#answers.length > 0 || this.state.isStale) {
        while (this.#answers.length > 0) this.deliver(0)
        if (this.state.isStale) this.dispatch({ type: 'due' })
      }
    }
    all()
    if (this.state.status === 'failed' || this.state.status === 'refused') this.dispatch({ type: 'retried' })
    this.dispatch({ type: 'scrolled', isAtTop: true })
    all()
  }

  /** What a list has from its end on. */
  fresh(query: ListQuery, end: number): readonly DeliveryLine[] {
    const before = Number(query.before ?? Infinity)
    return [...this.#entries.values()]
      .toReversed()
      .filter((each) => each.n < before && each.n >= end && passes(each, query))
  }
}

function passes({ event, n }: DeliveryLine, query: ListQuery): boolean {
  if (query.text) return n % 2 === 0
  return query.event === undefined || query.event === event
}

const event = fc.constantFrom(...EVENTS)
const query: fc.Arbitrary<ListQuery> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: event.map((each) => ({ event: each })) },
  fc.constant({ text: 'even' }),
  fc.record({ before: fc.integer({ min: 1, max: 12 }).map(String) }),
  fc.record({ event, before: fc.integer({ min: 1, max: 12 }).map(String) }),
)
const place = fc.nat({ max: 20 })

type Step = (instance: Instance) => void
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: event.map(
      (each): Step =>
        (instance) =>
          instance.arrive(each),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(place, fc.option(event, { nil: undefined })).map(
      ([at, each]): Step =>
        (instance) =>
          instance.change(at, each),
    ),
  },
  {
    weight: 1,
    arbitrary: place.map(
      (count): Step =>
        (instance) =>
          instance.remove(count % 5),
    ),
  },
  { weight: 4, arbitrary: fc.constant<Step>((instance) => instance.flush()) },
  { weight: 4, arbitrary: fc.constant<Step>((instance) => instance.hear()) },
  { weight: 1, arbitrary: fc.constant<Step>((instance) => instance.reconnect()) },
  {
    weight: 3,
    arbitrary: place.map(
      (at): Step =>
        (instance) =>
          instance.answer(at),
    ),
  },
  {
    weight: 4,
    arbitrary: place.map(
      (at): Step =>
        (instance) =>
          instance.deliver(at),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.boolean().map(
      (isRefused): Step =>
        (instance) =>
          instance.fail(isRefused),
    ),
  },
  {
    weight: 1,
    arbitrary: query.map(
      (each): Step =>
        (instance) =>
          instance.dispatch({ type: 'opened', query: each }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.boolean().map(
      (isAsked): Step =>
        (instance) =>
          instance.dispatch({ type: 'more', isAsked }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.boolean().map(
      (isAtTop): Step =>
        (instance) =>
          instance.dispatch({ type: 'scrolled', isAtTop }),
    ),
  },
  { weight: 2, arbitrary: fc.constant<Step>((instance) => instance.dispatch({ type: 'due' })) },
)

describe('the list of deliveries, whatever comes in which order', () => {
  it('is what a page loaded now would show, once nothing is on its way', () => {
    expect.hasAssertions()
    fc.assert(
      fc.property(query, fc.nat({ max: 8 }), fc.array(step, { maxLength: 60 }), (first, count, steps) => {
        const instance = new Instance()
        for (let i = 0; i < count; i++) instance.arrive(EVENTS[i % 2] ?? 'push')
        instance.dispatch({ type: 'opened', query: first })
        for (const each of steps) each(instance)
        instance.settle()
        const { lines, end, query: shown, missed, status, reading } = instance.state
        const page = instance.pageOf({ kind: 'open', query: shown })
        same({ missed, status, reading }, { missed: 0, status: 'ready', reading: null })
        const fresh = instance.fresh(shown, end.next ?? end.stopped?.before ?? 0)
        // What a search has found further back stays as it was found, even if it has been removed since.
        if (shown.text) same(numbersOf(lines.filter(({ n }) => instance.has(n))), numbersOf(fresh))
        else same(lines, fresh)
        same(lines.slice(0, page.deliveries.length), page.deliveries)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('the list of deliveries', () => {
  /** A list with these lines, and no more below them. */
  const listOf = (lines: readonly DeliveryLine[], next: number | null = null): ListState => {
    const opened = reduce(EMPTY_LIST, { type: 'opened', query: {} })
    return reduce(opened, { type: 'read', id: 1, page: { deliveries: lines, next } })
  }
  const numbers = ({ lines }: ListState): number[] => numbersOf(lines)

  it('counts what comes while the user is scrolled away, and reads it when they come back', () => {
    const away = reduce(listOf([line(1)]), { type: 'scrolled', isAtTop: false })
    const missed = reduce(away, { type: 'lines', lines: [line(2), line(3)] })
    expect([numbers(missed), missed.missed, missed.newest]).toEqual([[1], 2, 3])
    const back = reduce(missed, { type: 'scrolled', isAtTop: true })
    expect(back.reading).toEqual({ id: 2, kind: 'open', query: {} })
    expect(reduce(back, { type: 'scrolled', isAtTop: true }).reading).toBe(back.reading)
  })

  it('forgets its oldest lines while it follows what comes, and reads them again when scrolled to', () => {
    let list = listOf([line(1)])
    for (let n = 2; n <= 5000; n++) list = reduce(list, { type: 'lines', lines: [line(n)] })
    expect(list.lines.length).toBeLessThanOrEqual(2000)
    expect(list.end.next).toBe(list.lines.at(-1)?.n)
    expect(reduce(list, { type: 'more', isAsked: false }).reading?.query).toEqual({
      before: String(list.end.next),
    })
  })

  it('ends at its limit', () => {
    const all = Array.from({ length: MAX_LINES }, (_, i) => line(2 * MAX_LINES - i))
    const list = listOf(all, all.at(-1)?.n)
    expect(reduce(list, { type: 'more', isAsked: true }).reading).toBeNull()
  })

  it('ignores a page that does not follow its end, which has moved meanwhile', () => {
    const asked = reduce(listOf([line(9), line(8)], 8), { type: 'more', isAsked: false })
    const removed = reduce(asked, { type: 'removed', below: 9 })
    const page = { deliveries: [line(7)], next: null }
    expect(numbers(reduce(removed, { type: 'read', id: 2, page }))).toEqual([9])
  })

  it('reads on at once where the end came into view during a read', () => {
    const due = reduce(reduce(listOf([line(9)], 9), { type: 'stale' }), { type: 'due' })
    const wanted = reduce(due, { type: 'more', isAsked: false })
    const list = reduce(wanted, { type: 'read', id: 2, page: { deliveries: [line(9)], next: 9 } })
    expect(list.reading).toEqual({ id: 3, kind: 'more', query: { before: '9' } })
  })

  it('keeps what a search found further back when its first page is read again, and adds up what was searched', () => {
    const stopped = (deliveries: DeliveryLine[], read: number, before: number): DeliveryPage => ({
      deliveries,
      next: null,
      stopped: { read, before },
    })
    let list = reduce(EMPTY_LIST, { type: 'opened', query: { text: 'x' } })
    list = reduce(list, { type: 'read', id: 1, page: stopped([line(90)], 10, 85) })
    expect(reduce(list, { type: 'more', isAsked: false }).reading).toBeNull()
    list = reduce(list, { type: 'more', isAsked: true })
    list = reduce(list, { type: 'read', id: 2, page: stopped([line(70)], 20, 65) })
    expect(list.end.stopped).toEqual({ read: 30, before: 65 })
    list = reduce(reduce(list, { type: 'stale' }), { type: 'due' })
    list = reduce(list, { type: 'read', id: 3, page: stopped([line(96), line(90)], 12, 86) })
    expect([numbers(list), list.end.stopped]).toEqual([[96, 90, 70], { read: 30, before: 65 }])
  })

  it('empties where its filters are refused, and stays where relay is away', () => {
    const list = reduce(listOf([line(1)]), { type: 'opened', query: { since: 'never' } })
    const failed = { type: 'failed', id: 2, problem: 'since: no', isRefused: false } as const
    expect(reduce(list, failed)).toMatchObject({ status: 'failed', lines: [{ n: 1 }], problem: 'since: no' })
    expect(reduce(list, { ...failed, isRefused: true })).toMatchObject({ status: 'refused', lines: [] })
  })
})
