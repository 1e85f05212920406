import type { Delivery, Receipt } from '../journal/delivery.js'
import { printable, type Paint } from './output.js'

/** `12:04:11  #7  issue_comment.created  octo/demo#1`, for a person. */
export function deliveryLine(delivery: Delivery, { n, duplicate }: Receipt, paint: Paint): string {
  const { event, action, repo, number, receivedAt } = delivery
  const time = new Date(receivedAt).toTimeString().slice(0, 8)
  const name = printable(action === null ? event : `${event}.${action}`)
  const place = printable(`${repo ?? ''}${number === null ? '' : `#${number}`}`)
  const line = `${paint.dim(time)}  #${n}  ${paint.bold(name)}  ${place}`.trimEnd()
  return duplicate ? `${line}  ${paint.yellow('duplicate')}` : line
}

/** The same for a program. */
export function deliveryObject(delivery: Delivery, { n, duplicate }: Receipt): Record<string, unknown> {
  const { event, action, repo, number, receivedAt, provider, deliveryId, verifiedBy } = delivery
  return {
    type: 'delivery',
    n,
    time: new Date(receivedAt).toISOString(),
    provider,
    delivery: deliveryId,
    event,
    action,
    repo,
    number,
    verifiedBy,
    duplicate,
  }
}
