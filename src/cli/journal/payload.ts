import type { Delivery } from '../../journal/delivery.js'
import { jsonOf } from '../../journal/payload.js'
import { parseJson } from '../../json/parse.js'

/** The JSON value in a delivery. */
export interface Payload {
  /** Whether a form holds the JSON text. */
  readonly form: boolean
  /** The JSON text as received. */
  readonly text: string
  readonly value: unknown
}

/** Undefined when the body holds none. */
export function readPayload(delivery: Pick<Delivery, 'headers' | 'body'>): Payload | undefined {
  const bytes = jsonOf(delivery)
  if (!bytes) return undefined
  try {
    return { form: bytes !== delivery.body, value: parseJson(bytes), text: new TextDecoder().decode(bytes) }
  } catch {
    return undefined
  }
}
