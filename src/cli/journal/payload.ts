import type { Delivery } from '../../journal/delivery.js'
import { formPayload, isForm } from '../../webhook/form.js'
import { indexHeaders } from '../../webhook/headers.js'
import { parseJson } from '../../webhook/json.js'

/** What a delivery says. */
export interface Payload {
  readonly form: boolean
  /** The JSON text, as it was written. */
  readonly text: string
  readonly value: unknown
}

/** Undefined where the body holds none. */
export function readPayload({ headers, body }: Pick<Delivery, 'headers' | 'body'>): Payload | undefined {
  const form = isForm(indexHeaders(headers))
  const bytes = form ? formPayload(body) : body
  if (!bytes) return undefined
  try {
    return { form, value: parseJson(bytes), text: new TextDecoder().decode(bytes) }
  } catch {
    return undefined
  }
}
