import type { Journal } from '../journal/journal.js'

/** A request that relay has answered with 200. */
export interface SentRequest {
  /** Id that the sender gave it, or the digest of its body. */
  readonly id: string
  /** Number of the newest entry before it was sent. */
  readonly before: number
  readonly source: string
  /** Size of its body in bytes. */
  readonly size: number
}

/** Entry of such a request: its number, and its delivery id. */
export interface FoundEntry {
  readonly n: number
  readonly delivery: string
}

/** Most newer entries of a source that are looked at: as many as can come within one request. */
const MAX_NEWER = 20

/**
 * Finds the entry that a request has become: the one with its id or, if its sender gives none, the newest of its source
 * that is as long. Undefined if there is none. @throws RelayError `storage`
 */
export async function entryOf(
  journal: Pick<Journal, 'known' | 'select'>,
  { id, before, source, size }: SentRequest,
): Promise<FoundEntry | undefined> {
  const known = (await journal.known([id])).get(id)
  if (known !== undefined) return { n: known, delivery: id }
  for await (const { n, deliveryId, size: own } of journal.select({ source, last: MAX_NEWER }))
    if (n > before && own === size) return { n, delivery: deliveryId }
  return undefined
}
