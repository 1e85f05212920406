import { formPayload, isFormType } from '../base/form.js'
import type { Delivery } from './delivery.js'

/** The bytes of the JSON that a delivery carries: its body, or what a form has in `payload`. Undefined where a form has none. */
export function jsonOf({ headers, body }: Pick<Delivery, 'headers' | 'body'>): Uint8Array | undefined {
  const [, type] = headers.find(([name]) => name.toLowerCase() === 'content-type') ?? []
  return isFormType(type) ? formPayload(body) : body
}
