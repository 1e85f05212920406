import { hash, randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { excerpt } from '../base/log.js'
import type { HeaderLines } from '../http/headers.js'
import type { Delivery, Restoration } from '../journal/types.js'
import { type Content, readContent } from './content.js'
import { eventsOf, isMarked, isRepeatable } from './events.js'
import { headerOf, isInBody, nameText, type ValueLocation, valueAt, type WebhookScheme } from './scheme.js'

/** A delivery's values as its sender gives them. The action is separate from the event. */
export type Identity = Pick<Delivery, 'event' | 'hookId'> & {
  /** Undefined if the sender gives none. */
  readonly deliveryId: string | undefined
}

/**
 * Syntax of event names. GitHub and Gitea use lower-case words; other senders use dots, colons, slashes and spaces
 * (`Push Hook`).
 */
const EVENT = /^(?!\/$)[A-Za-z0-9_.: /-]{1,100}$/
const FAMILY_EVENT = /^[A-Za-z0-9_.: -]{1,100}$/
/** Syntax of ids: visible ASCII. Senders send a UUID. */
const ID = /^[\x21-\x7e]{1,200}$/
/** Event of a delivery that names none. */
export const UNNAMED = 'webhook'

function formOfEvent({ family }: WebhookScheme): RegExp {
  return family ? FAMILY_EVENT : EVENT
}

/**
 * Joins event and action. An action that cannot be written in a match or a fixture is left out, since users choose some
 * actions.
 */
export function wholeName(event: string, action: string | null): string {
  const whole = `${event}.${action}`
  return action !== null && EVENT.test(whole) ? whole : event
}

/** True if event and id are in headers alone, so that they can be checked before the body is parsed. */
export function isNamedByHeaders({ event, id }: WebhookScheme): boolean {
  return ![...event, ...id].some(isInBody)
}

/**
 * Reads how a request names its event and itself. @throws RelayError `invalid_event` for a name that is missing,
 * repeated or malformed
 */
export function readIdentity(lines: HeaderLines, payload: unknown, scheme: WebhookScheme): Identity {
  const { hook, family } = scheme
  const read = (place: ValueLocation, form: RegExp): string => {
    const value = nameText(valueAt(place, lines, payload))
    if (typeof value !== 'string' || !form.test(value))
      throw invalidEvent(
        `the ${isInBody(place) ? 'member' : 'header'} ${place} is missing, repeated or malformed`,
      )
    return value
  }
  const event = firstPlace(scheme.event, lines, payload)
  const id = firstPlace(scheme.id, lines, payload)
  // Most senders may omit the event, as Standard Webhooks allows; a code host never does.
  const isNamed = event !== undefined && (family !== undefined || isThere(event, lines, payload))
  const isLacking = id === undefined || valueAt(id, lines, payload) === undefined
  const { read: nameOf = String } = scheme.eventName ?? {}
  const named = isNamed ? nameOf(read(event, formOfEvent(scheme)).replace(/^\//, '')) : UNNAMED
  return {
    event: noticeOf(scheme, lines, payload) ?? named,
    deliveryId: isLacking && family === undefined ? undefined : read(id ?? '', ID),
    hookId: hook !== undefined && lines.has(hook) ? read(hook, ID) : '',
  }
}

/** Name of a message that is no event. Undefined for an event. */
export function noticeOf(
  { event, notice }: Pick<WebhookScheme, 'event' | 'notice'>,
  lines: HeaderLines,
  payload: unknown,
): string | undefined {
  const has = (place: ValueLocation): boolean => isThere(place, lines, payload)
  return notice && event.some(has) && !notice.lacks.some(has) ? notice.name : undefined
}

/** First location with a value, else the first location, which errors name. */
export function firstPlace(
  places: readonly ValueLocation[],
  lines: HeaderLines,
  payload: unknown,
): ValueLocation | undefined {
  return places.find((place) => isThere(place, lines, payload)) ?? places[0]
}

function isThere(place: ValueLocation, lines: HeaderLines, payload: unknown): boolean {
  const header = headerOf(place)
  return header === undefined ? valueAt(place, lines, payload) !== undefined : lines.has(header)
}

export function invalidEvent(why: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(why) })
}

/** Claims of a request that was not proved: at most 200 characters each, or null. */
export interface Claim {
  readonly event: string | null
  readonly deliveryId: string | null
  /**
   * For a log line: `unproved: event push, delivery 72d3162e-cc78`. A malformed value is quoted, so that it cannot pass
   * for relay's own text.
   */
  readonly text: string
}

/** Largest body in bytes that is parsed for its claims: nearly every delivery fits, and the sender is unverified. */
const MAX_CLAIMED = 65_536

/** Reads the claims of a request that was not proved. Never throws. */
export function claimOf(lines: HeaderLines, body: Uint8Array, scheme: WebhookScheme): Claim {
  const isRead = [...scheme.event, ...scheme.id].some(isInBody) && body.byteLength <= MAX_CLAIMED
  const payload = isRead ? readContent(body).value : undefined
  const claimed = (
    places: readonly ValueLocation[],
    form: RegExp,
  ): { value: string | null; shown: string } => {
    const place = firstPlace(places, lines, payload) ?? ''
    // Undefined for a repeated header.
    const one = nameText(valueAt(place, lines, payload))
    const first = isInBody(place) ? one : lines.get(place)?.[0]
    if (typeof first !== 'string') return { value: null, shown: '(none)' }
    const value = excerpt(first)
    return { value, shown: one !== undefined && form.test(value) ? value : JSON.stringify(value) }
  }
  const [event, id] = [claimed(scheme.event, formOfEvent(scheme)), claimed(scheme.id, ID)]
  const text = `unproved: event ${event.shown}, delivery ${id.shown}`
  const { read = String } = scheme.eventName ?? {}
  const named = event.value === null ? null : read(event.value)
  return { event: noticeOf(scheme, lines, payload) ?? named, deliveryId: id.value, text }
}

/**
 * Reads the content of a delivery. Of the formats other than JSON, only a form has values that can be read: its fields. @throws RelayError `invalid_event` for one that the sender never sends: damaged JSON, and for a code host
 * any body that is no JSON, or a Content-Type that contradicts the body
 */
export function acceptedContent(
  isFormType: boolean,
  body: Uint8Array,
  { content: accepted }: WebhookScheme,
): Content {
  const content = readContent(body)
  const { kind } = content
  const isPayload = 'isForm' in content && content.isForm
  if (accepted === 'payload' && isFormType !== isPayload)
    throw invalidEvent(isFormType ? 'the body is not a form with a payload' : 'the body is not JSON')
  if (accepted === 'any' || (kind === 'json' && (accepted !== 'json' || !content.isForm))) return content
  if (accepted !== 'payload' && (kind === 'fields' || ('format' in content && content.format !== undefined)))
    return content
  throw invalidEvent(`the body is ${'why' in content ? content.why : 'not JSON'}`)
}

/**
 * Describes a restored delivery, whose headers are not proved. `unproved` is set if the payload may also
 * belong to another event, or is of an unknown kind, such as one of a newer code host.
 * @throws RelayError `invalid_event` if it belongs to another event
 */
export function provenEvent(
  event: string,
  lines: HeaderLines,
  payload: unknown,
  { event: places, events }: WebhookScheme,
): Pick<Restoration, 'unproved' | 'repeatable' | 'named'> {
  if (!events) {
    const place = firstPlace(places, lines, payload)
    return place === undefined || isInBody(place) ? {} : { unproved: true }
  }
  const possible = eventsOf(payload, events)
  if (possible.length > 0 && !possible.includes(event))
    throw invalidEvent(`the payload is of ${possible.join(' or ')}, not of the event that the header names`)
  if (possible.length !== 1) return { unproved: true, named: true }
  return isRepeatable(event, payload, events) ? { repeatable: true } : {}
}

/** Longest action or `owner/name`. GitHub and Gitea allow no longer ones. Longer text is ignored. */
const MAX_LENGTH = 256
/** Longest ref: `refs/heads/` and a name of 255 bytes, GitHub's limit. */
const MAX_REF_LENGTH = 'refs/heads/'.length + 255

/**
 * Extracts the values that listings show from a payload, which may be any JSON value. A missing value is null; a
 * missing `ref` is left out.
 */
export function summarize(
  payload: unknown,
  lines: HeaderLines,
  scheme: WebhookScheme,
): Pick<Delivery, 'action' | 'repo' | 'number' | 'kind' | 'ref'> {
  const textAt = (places: readonly ValueLocation[], maxLength = MAX_LENGTH): string | null => {
    for (const place of places) {
      const value = valueAt(place, lines, payload)
      if (typeof value === 'string' && isName(value, maxLength)) return value
    }
    return null
  }
  const ref = textAt(scheme.ref, MAX_REF_LENGTH)
  return {
    action: textAt(scheme.action),
    repo: textAt(scheme.repo),
    ...(firstNumber(payload, lines, scheme) ?? { number: null }),
    ...(ref !== null && { ref }),
  }
}

function isName(value: string, maxLength: number): boolean {
  return value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
}

/** Number of the subject, and what kind of subject it is. Undefined for a payload that has none. */
function firstNumber(
  payload: unknown,
  lines: HeaderLines,
  scheme: WebhookScheme,
): Pick<Delivery, 'number' | 'kind'> | undefined {
  for (const location of scheme.number) {
    const { place, kind, mark } = typeof location === 'string' ? { place: location } : location
    if (mark !== undefined && !isMarked(payload, mark)) continue
    const number = valueAt(place, lines, payload)
    if (typeof number === 'number' && Number.isSafeInteger(number) && number > 0)
      return { number, ...(kind && { kind }) }
  }
  return undefined
}

/** Id that identifies a body whose sender gives no id, and the query with which it came. */
export function bodyDigest(body: Uint8Array, query = ''): string {
  // No signed text of a sender has a NUL before a query.
  const all = query === '' ? body : Buffer.concat([body, Buffer.from(`\0?${query}`)])
  return hash('sha256', all, 'base64url')
}

/** Makes the id of a new delivery whose sender gives none, from the hub's id if the delivery waited at one. */
export function ownId(id: string = randomUUID()): string {
  return `relay-${id}`
}

/** True if relay has made the id of a delivery: it is in no header and no body. */
export function isOwnId(id: string, body: Uint8Array, query?: string): boolean {
  return /^relay-[\da-f-]{36}$/.test(id) || [undefined, query].some((each) => id === bodyDigest(body, each))
}
