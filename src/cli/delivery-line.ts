import type { Delivery, Receipt } from '../journal/delivery.js'
import { printable, type Paint } from './output.js'

/** What names a delivery on a line. */
export type Named = Pick<Delivery, 'event' | 'action' | 'repo' | 'number'>

/** `12:04:11  #7  issue_comment.created  octo/demo#1`, for a person. */
export function deliveryLine(delivery: Delivery, { n, duplicate }: Receipt, paint: Paint): string {
  const line = lineStart(delivery.receivedAt, n, delivery, paint)
  return duplicate ? `${line}  ${paint.yellow('duplicate')}` : line
}

/** The same for a program. */
export function deliveryObject(delivery: Delivery, { n, duplicate }: Receipt): Record<string, unknown> {
  return { type: 'delivery', n, ...deliveryFields(delivery), duplicate }
}

/** What every object about a delivery tells. */
export function deliveryFields(delivery: Omit<Delivery, 'body'>): Record<string, unknown> {
  const { event, action, repo, number, receivedAt, provider, deliveryId, verifiedBy, restored } = delivery
  return {
    time: new Date(receivedAt).toISOString(),
    provider,
    delivery: deliveryId,
    event,
    action,
    repo,
    number,
    verifiedBy,
    restored: restored?.how ?? null,
  }
}

/** How every line begins that `serve` prints about a delivery. */
export function lineStart(at: number, n: number, delivery: Named, paint: Paint): string {
  const time = new Date(at).toTimeString().slice(0, 8)
  return `${paint.dim(time)}  #${n}  ${paint.bold(eventName(delivery))}  ${placeName(delivery)}`.trimEnd()
}

/** `issue_comment.created` */
export function eventName({ event, action }: Named): string {
  return printable(action === null ? event : `${event}.${action}`)
}

/** `octo/demo#1`; empty where the payload names no repository. */
export function placeName({ repo, number }: Named): string {
  return printable(`${repo ?? ''}${number === null ? '' : `#${number}`}`)
}
