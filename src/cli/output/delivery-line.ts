import type { Delivery, Receipt } from '../../journal/delivery.js'

/** The fields of a delivery that a line shows. */
export type DeliveryName = Pick<Delivery, 'event' | 'action' | 'repo' | 'number' | 'ref'>

/** A delivery for a program. */
export function deliveryObject(delivery: Delivery, receipt: Receipt): Record<string, unknown> {
  const { n, duplicate, late } = receipt
  return { type: 'delivery', n, ...deliveryFields(delivery), duplicate, ...(late && { late }) }
}

/** The fields of every object about a delivery. */
export function deliveryFields(delivery: Omit<Delivery, 'body'>): Record<string, unknown> {
  const { event, action, repo, number, ref, receivedAt, provider, deliveryId, verifiedBy, restored } =
    delivery
  return {
    time: new Date(receivedAt).toISOString(),
    provider,
    delivery: deliveryId,
    event,
    action,
    repo,
    number,
    ref: ref ?? null,
    verifiedBy,
    restored: restored?.how ?? null,
    unproved: restored?.unproved ?? false,
  }
}

/** `issue_comment.created` */
export function eventName({ event, action }: DeliveryName): string {
  return action === null ? event : `${event}.${action}`
}

/** `octo/demo#1`, `octo/demo  main`; empty where the payload names neither a repository nor a branch. */
export function placeName({ repo, number, ref }: DeliveryName): string {
  const subject = `${repo ?? ''}${number === null ? '' : `#${number}`}`
  return ref === undefined ? subject : `${subject}  ${shortRef(ref)}`.trim()
}

/** The name of a branch or tag; the event says which of the two it is. */
function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}
