import { firstPayload, isFormBody } from '../base/bytes.js'
import { parseJson } from '../json/parse.js'
import type { Delivery } from './types.js'

/**
 * The bytes of the JSON that a delivery carries: its body, or what a form has in its first field, `payload`. Undefined where a form has none.
 * Intake reads the same, so what a command gets is what was signed and what the event was named from.
 */
export function jsonOf({ body }: Pick<Delivery, 'body'>): Uint8Array | undefined {
  return isFormBody(body) ? firstPayload(body) : body
}

/** The JSON value in a delivery. */
export interface Payload {
  /** Whether a form holds the JSON text. */
  readonly form: boolean
  /** The JSON text as received. */
  readonly text: string
  readonly value: unknown
}

/** Undefined when the body holds none. */
export function readPayload(delivery: Pick<Delivery, 'body'>): Payload | undefined {
  const bytes = jsonOf(delivery)
  if (!bytes) return undefined
  try {
    return { form: bytes !== delivery.body, value: parseJson(bytes), text: new TextDecoder().decode(bytes) }
  } catch {
    return undefined
  }
}
