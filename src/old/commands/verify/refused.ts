import { type Explanation, invalid } from '../../../webhook/explain.js'
import type { RefusedReader } from '../../journal/refused.js'
import type { Item } from '../replay/select-items.js'

export interface VerifyItem extends Item {
  /** What is printed instead of this explanation, if anything. */
  readonly instead?: (explanation: Explanation) => Explanation | undefined
}

/**
 * A refused request. Where the bytes that were signed are not known, since the body was not stored whole or a tunnel changed
 * it, the reason that the instance found counts.
 */
export async function refusedItem(reader: RefusedReader, id: number): Promise<VerifyItem> {
  const entry = await reader.entry(id)
  const recorded = reader.recorded(entry)
  const isKnown = entry.via === 'http' && recorded.body.length === entry.size
  return {
    name: `refused:${id}`,
    load: async () => recorded,
    instead: ({ valid }) => (valid || isKnown ? undefined : invalid('unverifiable', entry.reason)),
  }
}
