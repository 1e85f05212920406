import type { Delivery } from './delivery.js'

/** What a delivery is about within its repository: `#12`, a branch or a tag; null where the payload names none. */
export function subjectOf({ number, ref }: Pick<Delivery, 'number' | 'ref'>): string | null {
  if (number !== null) return `#${number}`
  return ref === undefined ? null : shortRef(ref)
}

/** The name of a branch or tag; the event says which of the two it is. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}
