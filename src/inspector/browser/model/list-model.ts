import type { DeliveryLine, DeliveryPage } from '../../api.js'

/** Lines held while the list follows what arrives. Older ones are loaded again when they are scrolled to. */
export const MAX_FOLLOWED = 1000

/** Lines held at most. Beyond that the list continues on a page of its own, so that memory stays bounded. */
export const MAX_LINES = 20_000

/** Lines held back at most while the user has scrolled away; beyond that only their number is known. */
export const MAX_HELD = 500

/** The part of the list that the page has, newest first. */
export interface ListModel {
  readonly lines: readonly DeliveryLine[]
  /** The `before` of the next page; null at the end. */
  readonly next: number | null
  /** Set where a search for text stopped at its limit. */
  readonly stopped: DeliveryPage['stopped'] | null
  /** Arrived while the user was scrolled away, newest first. */
  readonly held: readonly DeliveryLine[]
  /** How many arrived meanwhile, held or not. */
  readonly heldCount: number
}

export function firstPage({ deliveries, next, stopped }: DeliveryPage): ListModel {
  return { lines: deliveries, next, stopped: stopped ?? null, held: [], heldCount: 0 }
}

/** Adds the next page. Lines that are there already are left out. */
export function withNextPage(model: ListModel, { deliveries, next, stopped }: DeliveryPage): ListModel {
  const last = model.lines.at(-1)?.n ?? Infinity
  const older = deliveries.filter(({ n }) => n < last)
  return { ...model, lines: [...model.lines, ...older], next, stopped: stopped ?? null }
}

/**
 * Takes in what the instance reports, oldest first: lines that changed take their place; new ones come in at the top, or are held
 * while the user is scrolled away.
 */
export function withLive(
  model: ListModel,
  reported: readonly DeliveryLine[],
  isFollowing: boolean,
): ListModel {
  const newest = model.held[0]?.n ?? model.lines[0]?.n ?? 0
  const fresh = reported.filter(({ n }) => n > newest).toReversed()
  const changed = new Map(reported.map((line) => [line.n, line]))
  const updated = {
    ...model,
    lines: withChanges(model.lines, changed),
    held: withChanges(model.held, changed),
  }
  if (fresh.length === 0) return updated
  if (isFollowing) return trimmed({ ...updated, lines: [...fresh, ...updated.held, ...updated.lines] })
  return {
    ...updated,
    held: [...fresh, ...updated.held].slice(0, MAX_HELD),
    heldCount: updated.heldCount + fresh.length,
  }
}

/** Counts deliveries that arrived but were not reported, while the user is scrolled away. */
export function withSkipped(model: ListModel, skipped: number): ListModel {
  return skipped === 0 ? model : { ...model, heldCount: model.heldCount + skipped }
}

/** Puts a first page that was read again in the place of the lines that it covers. */
export function withFirstPage(model: ListModel, page: DeliveryPage, isFollowing: boolean): ListModel {
  const [newest, last] = [model.lines[0]?.n ?? 0, page.deliveries.at(-1)?.n ?? 0]
  // Nothing in common: there is a gap between the two, which only reading on from the new page closes.
  if (isFollowing && (last > newest || page.next === null)) return firstPage(page)
  const fresh = page.deliveries.filter(({ n }) => n > newest)
  const covered = new Map(page.deliveries.map((line) => [line.n, line]))
  const lines = model.lines.flatMap((line) => (line.n < last ? [line] : (covered.get(line.n) ?? [])))
  if (isFollowing) return trimmed({ ...model, lines: [...fresh, ...lines] })
  return { ...model, lines, held: fresh.slice(0, MAX_HELD), heldCount: fresh.length }
}

/** Shows what was held. Undefined if some of it was dropped: then the first page has to be read again. */
export function withHeld(model: ListModel): ListModel | undefined {
  if (model.heldCount > model.held.length) return undefined
  return trimmed({ ...model, lines: [...model.held, ...model.lines] })
}

/** Drops entries that retention removed, also of those that arrived while the user was scrolled away. */
export function withoutRemoved(model: ListModel, below: number): ListModel {
  const isLeft = ({ n }: DeliveryLine): boolean => n >= below
  const lines = model.lines.filter(isLeft)
  const isAtEnd = lines.length < model.lines.length
  const held = model.held.filter(isLeft)
  // Those of which only the number is known are older than the newest held line.
  const unknown = model.heldCount - model.held.length
  const left = (model.held[0]?.n ?? Infinity) - below + 1 - held.length
  const heldCount = held.length + Math.min(unknown, Math.max(0, left))
  return { ...model, lines, held, heldCount, ...(isAtEnd && { next: null, stopped: null }) }
}

/** While it follows, the list is only as long as a person looks back; the rest is a page that can be read again. */
function trimmed(model: ListModel): ListModel {
  const shown = { ...model, held: [], heldCount: 0 }
  if (model.lines.length <= 2 * MAX_FOLLOWED) return shown
  const lines = model.lines.slice(0, MAX_FOLLOWED)
  return { ...shown, lines, next: lines.at(-1)?.n ?? null, stopped: null }
}

function withChanges(
  lines: readonly DeliveryLine[],
  changed: ReadonlyMap<number, DeliveryLine>,
): readonly DeliveryLine[] {
  return lines.some(({ n }) => changed.has(n)) ? lines.map((line) => changed.get(line.n) ?? line) : lines
}
