import { firstPayload, isFormBody } from '../http/forms.js'
import { parseJson } from '../json/parse.js'
import type { DeliveryBody } from './types.js'

/**
 * Bytes of the JSON in a delivery: its body, or the first field of a form if that is `payload`. Undefined if a form has
 * none. Intake reads the same bytes, so that a command gets what was signed and what named the event.
 */
export function jsonBytes({ body }: DeliveryBody): Uint8Array | undefined {
  return isFormBody(body) ? firstPayload(body) : body
}

/** The JSON value in a delivery. */
export interface ParsedPayload {
  /** True if the JSON is in a form. */
  readonly form: boolean
  /** The JSON text as received. */
  readonly text: string
  readonly value: unknown
}

/** Parses the JSON in a delivery. Undefined if it has none. */
export function readPayload(delivery: DeliveryBody): ParsedPayload | undefined {
  const bytes = jsonBytes(delivery)
  if (!bytes) return undefined
  try {
    return { form: bytes !== delivery.body, value: parseJson(bytes), text: new TextDecoder().decode(bytes) }
  } catch {
    return undefined
  }
}
