import type { Clock } from '../base/time.js'
import type { Minute } from '../journal/types.js'
import type { Timeline } from './api.js'
import type { InspectorParts } from './parts.js'

const MINUTE_MS = 60_000
const MINUTES = 60
/** A second: as often as a page asks for it, however many are open. */
const CACHE_MS = 1000

/** Counts the deliveries of the last hour by minute. At most once a second, since every open page asks. */
export function createTimeline({
  journal,
  refusals,
  clock,
}: Pick<InspectorParts, 'journal' | 'refusals'> & { readonly clock: Clock }): () => Promise<Timeline> {
  let cached: Promise<Timeline> | undefined
  let since = -Infinity
  const read = async (): Promise<Timeline> => {
    const last = Math.floor(clock() / MINUTE_MS)
    const first = last - MINUTES + 1
    const found = await journal.minutes(first * MINUTE_MS, (last + 1) * MINUTE_MS)
    const byMinute = new Map<number, Minute>(found.map((each) => [each.minute, each]))
    const refused = refusals.list.minutes()
    return {
      minutes: Array.from({ length: MINUTES }, (_, i) => {
        const { received = 0, failed = 0 } = byMinute.get(first + i) ?? {}
        return { at: (first + i) * MINUTE_MS, received, failed, refused: refused.get(first + i) ?? 0 }
      }),
    }
  }
  return () => {
    const now = performance.now()
    if (cached && now - since < CACHE_MS) return cached
    since = now
    cached = read()
    cached.catch(() => (cached = undefined))
    return cached
  }
}
