import { RelayError } from '../base/errors.js'
import { excerpt } from '../base/log.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type WebhookScheme } from '../providers/provider.js'
import { type HeaderLines, only } from './headers.js'

/** A delivery's event and ids, according to its headers. */
export interface Identity {
  readonly event: string
  readonly deliveryId: string
  /** Empty if the provider sends none. */
  readonly hookId: string
}

/** GitHub and Gitea name events in lower-case words. Other providers use spaces and colons (`Push Hook`). */
const EVENT = /^[A-Za-z0-9_.: -]{1,100}$/
/** Visible ASCII. Providers send a UUID. */
const ID = /^[\x21-\x7e]{1,200}$/

/**
 * Reads the event, the delivery id and, if the provider sends one, the hook id.
 * @throws RelayError `invalid_event` if a header is missing (a hook id may be), repeated or malformed.
 */
export function readIdentity(lines: HeaderLines, scheme: WebhookScheme): Identity {
  const hookHeader = scheme.hookHeader ?? ''
  return {
    event: read(lines, eventHeader(lines, scheme), EVENT),
    deliveryId: read(lines, deliveryHeader(lines, scheme), ID),
    hookId: lines.has(hookHeader) ? read(lines, hookHeader, ID) : '',
  }
}

/** The event and delivery id that a refused request claims. Anybody can write these headers. */
export function claimedIdentity(
  lines: HeaderLines,
  scheme: WebhookScheme,
): { readonly event: string | null; readonly deliveryId: string | null } {
  const first = (name: string): string | null => {
    const [value] = lines.get(name) ?? []
    return value === undefined ? null : excerpt(value)
  }
  return { event: first(eventHeader(lines, scheme)), deliveryId: first(deliveryHeader(lines, scheme)) }
}

/** {@link claimedIdentity} for a log line: `unproved: event push, delivery 72d3162e-cc78`. */
export function claimText(lines: HeaderLines, scheme: WebhookScheme): string {
  const event = claimed(lines, eventHeader(lines, scheme), EVENT)
  return `unproved: event ${event}, delivery ${claimed(lines, deliveryHeader(lines, scheme), ID)}`
}

function eventHeader(lines: HeaderLines, scheme: WebhookScheme): string {
  return lines.has(scheme.eventHeader) || !lines.has(GENERIC_EVENT) ? scheme.eventHeader : GENERIC_EVENT
}

function deliveryHeader(lines: HeaderLines, scheme: WebhookScheme): string {
  return lines.has(scheme.deliveryHeader) || !lines.has(GENERIC_DELIVERY)
    ? scheme.deliveryHeader
    : GENERIC_DELIVERY
}

/** A malformed value is quoted, so that it cannot pass for text of relay's log line. */
function claimed(lines: HeaderLines, name: string, form: RegExp): string {
  const [value, second] = lines.get(name) ?? []
  if (value === undefined) return '(none)'
  return second === undefined && form.test(value) ? value : JSON.stringify(excerpt(value))
}

function read(lines: HeaderLines, name: string, form: RegExp): string {
  const value = only(lines, name)
  if (value === undefined || !form.test(value)) {
    const cause = new Error(`the header ${name} is missing, repeated or malformed`)
    throw new RelayError('invalid_event', 'Invalid event', { cause })
  }
  return value
}
