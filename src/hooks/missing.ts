import type { DeliveryPage, HookDelivery } from '../providers/hooks.js'

/** Far more pages of 100 than a hook's log of 3 days has. */
const MAX_PAGES = 1000

export interface LogReader {
  /** One page of the log, newest first; the first without a cursor. */
  readonly page: (cursor: string | undefined) => Promise<DeliveryPage>
  /** Those of the GUIDs that the journal neither has nor had. */
  readonly unknown: (guids: readonly string[]) => Promise<ReadonlySet<string>>
  /** Milliseconds since 1970-01-01 UTC: what was first sent before is left out. */
  readonly since: number
  /** The id up to which nothing is missing. The host's ids grow. */
  readonly after: bigint
}

/** What a log has. */
export interface Missing {
  readonly deliveries: readonly HookDelivery[]
  /** By GUID, the id of its oldest entry. */
  readonly oldest: ReadonlyMap<string, bigint>
  /** The largest id of the log; 0 if it is empty. */
  readonly newest: bigint
}

/**
 * What a hook's log has and the journal lacks, oldest first, once for each GUID however often it was sent. Each entry is the
 * newest of its GUID, but is ordered by the oldest, which is when the event happened. Stops reading at the first page that
 * begins before `since` or `after`, and after 1000 pages.
 * @throws as `page` and `unknown` do
 */
export async function findMissing({ page, unknown, since, after }: LogReader): Promise<Missing> {
  const missing = new Map<string, HookDelivery>()
  const oldest = new Map<string, bigint>()
  let newest = 0n
  let cursor: string | undefined
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const { deliveries, next } = await page(cursor)
    for (const { id } of deliveries.slice(0, 1)) if (BigInt(id) > newest) newest = BigInt(id)
    const recent = deliveries.filter(({ deliveredAt, id }) => deliveredAt >= since && BigInt(id) > after)
    const wanted = await unknown([...new Set(recent.map(({ guid }) => guid))])
    for (const delivery of recent.filter(({ guid }) => wanted.has(guid))) {
      const latest = missing.get(delivery.guid) ?? delivery
      // A map keeps the place of a key that it has: adding it again moves it to that of its oldest entry.
      missing.delete(delivery.guid)
      missing.set(delivery.guid, latest)
      oldest.set(delivery.guid, BigInt(delivery.id))
    }
    cursor = next
    if (cursor === undefined || recent.length === 0) break
  }
  return { deliveries: [...missing.values()].toReversed(), oldest, newest }
}
