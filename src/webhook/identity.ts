import { RelayError } from '../base/errors.js'
import type { WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, only } from './headers.js'

/** What a delivery's headers say it is. */
export interface Identity {
  readonly event: string
  readonly deliveryId: string
  /** Empty where the provider sends none. */
  readonly hookId: string
}

/** The names every provider's deliveries may use; the provider's own header wins. */
const GENERIC_EVENT = 'x-provider-event'
const GENERIC_DELIVERY = 'x-provider-delivery'

/** GitHub's and Gitea's events are lower-case words; the space and the colon are other providers' (`Push Hook`). */
const EVENT = /^[A-Za-z0-9_.: -]{1,100}$/
/** Visible ASCII. Providers send a UUID. */
const ID = /^[\x21-\x7e]{1,200}$/

/**
 * Reads event and delivery id from their headers, and the hook id where the provider names one.
 * @throws RelayError `invalid_event` when one is missing (a hook id may be), given twice or not well formed.
 */
export function readIdentity(lines: HeaderLines, scheme: WebhookScheme): Identity {
  const hookHeader = scheme.hookHeader ?? ''
  return {
    event: read(lines, lines.has(scheme.eventHeader) ? scheme.eventHeader : GENERIC_EVENT, EVENT),
    deliveryId: read(lines, lines.has(scheme.deliveryHeader) ? scheme.deliveryHeader : GENERIC_DELIVERY, ID),
    hookId: lines.has(hookHeader) ? read(lines, hookHeader, ID) : '',
  }
}

function read(lines: HeaderLines, name: string, form: RegExp): string {
  const value = only(lines, name)
  if (value === undefined || !form.test(value)) throw new RelayError('invalid_event', 'Invalid event')
  return value
}
