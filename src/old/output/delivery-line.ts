import type { Delivery, Receipt } from '../../journal/types.js'
import { editedFrom } from '../../journal/types.js'
import { shortRef } from '../../journal/types.js'

/** The fields of a delivery that a line shows. */
export type DeliveryName = Pick<Delivery, 'event' | 'action' | 'repo' | 'number' | 'ref'>

/** A delivery for a program. */
export function deliveryObject(delivery: Delivery, receipt: Receipt): Record<string, unknown> {
  const { n, duplicate, ignoredBy = null } = receipt
  return { type: 'delivery', n, ...deliveryFields(delivery), duplicate, ignoredBy }
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
    editedFrom: editedFrom(delivery) ?? null,
  }
}

/** `issue_comment.created` */
export function eventName({ event, action }: Pick<DeliveryName, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

/** `octo/demo#1`, `octo/demo  main`; empty where the payload names neither a repository nor a branch. */
export function placeName({ repo, number, ref }: DeliveryName): string {
  const subject = `${repo ?? ''}${number === null ? '' : `#${number}`}`
  return ref === undefined ? subject : `${subject}  ${shortRef(ref)}`.trim()
}
