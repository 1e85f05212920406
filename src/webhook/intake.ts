import { hash, randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { firstPayload, formFields, isFormBody } from '../http/forms.js'
import { excerpt } from '../base/log.js'
import { isCodeHost } from '../base/providers.js'
import type { Clock } from '../base/time.js'
import { CREDENTIAL_HEADERS, type Header, type HeaderLines, indexHeaders } from '../http/headers.js'
import type { Journal } from '../journal/journal.js'
import { type Delivery, EDITED_HEADER, isEditedHeader } from '../journal/types.js'
import type { Plan, Receipt, Restoration } from '../journal/types.js'
import { parseJson } from '../json/parse.js'
import { eventsOf, isRepeatable } from '../codehost/events.js'
import { staleness, tokenHeaders } from '../schemes/proof.js'
import {
  type EventTable,
  nameText,
  isInBody,
  type ValueLocation,
  valueAt,
  type WebhookScheme,
} from '../schemes/scheme.js'
import { isForm, verifySignature, type Source, signedBytes } from './signature.js'

/** A received request: all header lines, and the body's exact bytes. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** Origin of a request. */
export interface RequestOrigin {
  /** Its source when the request began: a change of the settings applies from the next request on. */
  readonly source: Source
  /**
   * Method by which the bytes of a tunnel's message were restored. Anybody may have written its headers, so its payload
   * must fit its event.
   */
  readonly restored?: string | undefined
  /**
   * Arrival of a request that had to wait for storage, in milliseconds since 1970-01-01 UTC. Its signed time is
   * compared with this.
   */
  readonly at?: number | undefined
  /**
   * Set if a user edited and sent it: the number of the original entry, and its targets if they are not those of the
   * routes.
   */
  readonly edited?: { readonly from: number; readonly targets?: readonly string[] | undefined }
}

export interface IntakeParts {
  readonly journal: Pick<Journal, 'append'>
  /** Determines the forwarding of a delivery. Must not throw. */
  readonly plan: (delivery: Delivery) => Plan
  readonly clock: Clock
  /** Called with each stored delivery. Must not throw, since the response does not depend on it. */
  readonly onDelivery?: ((delivery: Delivery, receipt: Receipt) => void) | undefined
}

export interface Intake {
  /**
   * Verifies a webhook request and stores it. Resolves once the delivery is on disk. Reads nothing but the signature
   * until that matches. Deliveries are stored in the order of the calls.
   * @throws RelayError `invalid_signature` if no configured secret made the signature; `invalid_event` if the event
   * header, the delivery header or the body is invalid; `storage` if it could not be stored, so that the sender may try
   * again
   */
  receive(request: WebhookRequest, from: RequestOrigin): Promise<Received>
}

/**
 * Result of intake. `challenge` is the text that the sender expects in the response, as proof that the address belongs
 * to its user.
 */
export type Received = Receipt & { readonly challenge?: string }

/** Creates the intake, the single entry point for deliveries, over HTTP and through a tunnel. */
export function createIntake(parts: IntakeParts): Intake {
  const { journal, clock, onDelivery } = parts
  return {
    async receive(request, from) {
      const { challenge, ...delivery } = verified(request, from, clock())
      const plan = parts.plan(delivery)
      const targets = from.edited?.targets ?? plan.targets
      const receipt = await journal.append(delivery, { ...plan, targets }).catch((cause: unknown) => {
        throw new RelayError('storage', 'Delivery could not be stored', { cause, forClients: true })
      })
      onDelivery?.(delivery, receipt)
      return challenge === undefined ? receipt : { ...receipt, challenge }
    },
  }
}

/** Verifies a request with its source's secrets, and returns the delivery. */
function verified(
  request: WebhookRequest,
  from: RequestOrigin,
  receivedAt: number,
): Delivery & { readonly challenge?: string } {
  const { headers, body } = request
  const { source, restored: how, at = receivedAt, edited } = from
  const lines = indexHeaders(headers)
  const proven = verifySignature(lines, body, source)
  if (!proven) throw invalidSignature()
  const { scheme } = source
  const isHost = isCodeHost(source.name)
  // A code host's headers are checked before the body is parsed.
  const named = isHost ? readIdentity(lines, undefined, body, scheme) : undefined
  const payload = readPayload(lines, body, scheme)
  const stale = proven.proof && staleness(proven.proof, { lines, payload }, at)
  if (stale !== undefined) throw invalidSignature(new Error(stale))
  // If several headers may contain the id, the signed one is used.
  const signedId = proven.proof?.id
  const places = signedId === undefined ? scheme : { ...scheme, id: [signedId] }
  const identity = named ?? readIdentity(lines, payload, body, places)
  const restored = how !== undefined && {
    how,
    sha256: hash('sha256', signedBytes(lines, body, scheme) ?? body, 'base64url'),
    ...proveEvent(identity.event, lines, payload, scheme),
    ...(signedId !== undefined && { repeatable: true as const }),
  }
  const summary = summarize(payload, lines, scheme)
  const challenge = scheme.challenge && valueAt(scheme.challenge, lines, payload)
  return {
    receivedAt,
    provider: source.name,
    ...(source.schemeText !== source.name && { scheme: source.schemeText }),
    ...identity,
    // An edited copy may have the body of its original, and so the same digest.
    ...(edited && identity.deliveryId === bodyDigest(body) && { deliveryId: randomUUID() }),
    ...summary,
    // Only a code host's events have separate actions; elsewhere both are one name.
    ...(!isHost && { event: wholeName(identity.event, summary.action), action: null }),
    headers: storedHeaders(headers, scheme, edited?.from),
    body,
    verifiedBy: proven.by,
    ...(restored && { restored }),
    ...(typeof challenge === 'string' && { challenge }),
  }
}

function invalidSignature(cause?: Error): RelayError {
  return new RelayError('invalid_signature', 'Invalid signature', { cause })
}

/** The sender's names of an event, a delivery and, if it has one, a hook. */
type Identity = Pick<Delivery, 'event' | 'deliveryId' | 'hookId'>

/**
 * Syntax of event names. GitHub and Gitea use lower-case words; other senders use dots, colons, slashes and spaces
 * (`Push Hook`).
 */
const EVENT = /^(?!\/$)[A-Za-z0-9_.: /-]{1,100}$/
const HOST_EVENT = /^[A-Za-z0-9_.: -]{1,100}$/
/** Syntax of ids: visible ASCII. Senders send a UUID. */
const ID = /^[\x21-\x7e]{1,200}$/
/** Event of a delivery that names none. */
const UNNAMED = 'webhook'

/**
 * Joins event and action. An action that cannot be written in a match or a fixture is left out, since users choose some
 * actions.
 */
function wholeName(event: string, action: string | null): string {
  const whole = `${event}.${action}`
  return action !== null && EVENT.test(whole) ? whole : event
}

function readIdentity(
  lines: HeaderLines,
  payload: unknown,
  body: Uint8Array,
  scheme: WebhookScheme,
): Identity {
  const { hook } = scheme
  const read = (place: ValueLocation, form: RegExp): string => {
    const value = nameText(valueAt(place, lines, payload))
    if (typeof value !== 'string' || !form.test(value))
      throw invalidEvent(
        `the ${isInBody(place) ? 'member' : 'header'} ${place} is missing, repeated or malformed`,
      )
    return value
  }
  const event = placeOf(scheme.event, lines, payload)
  const id = placeOf(scheme.id, lines, payload)
  // Most senders may omit the event, as Standard Webhooks allows; a code host never does.
  const isNamed = event !== undefined && (scheme.events !== undefined || isThere(event, lines, payload))
  const isLacking = id === undefined || valueAt(id, lines, payload) === undefined
  return {
    event: isNamed ? read(event, formOfEvent(scheme)).replace(/^\//, '') : UNNAMED,
    deliveryId: isLacking && scheme.idOr === 'digest' ? bodyDigest(body) : read(id ?? '', ID),
    hookId: hook !== undefined && lines.has(hook) ? read(hook, ID) : '',
  }
}

/** Replacement for the id of a delivery without one. */
export function bodyDigest(body: Uint8Array): string {
  return hash('sha256', body, 'base64url')
}

function formOfEvent({ events }: { readonly events?: EventTable }): RegExp {
  return events ? HOST_EVENT : EVENT
}

/** First location with a value, else the first location, which errors name. */
function placeOf(
  places: readonly ValueLocation[],
  lines: HeaderLines,
  payload: unknown,
): ValueLocation | undefined {
  return places.find((place) => isThere(place, lines, payload)) ?? places[0]
}

function isThere(place: ValueLocation, lines: HeaderLines, payload: unknown): boolean {
  const [header = ''] = place.split('#')
  return isInBody(place) ? valueAt(place, lines, payload) !== undefined : lines.has(header)
}

/** Parses the payload of any request, as far as possible. */
export function parsePayload(lines: HeaderLines, body: Uint8Array): unknown {
  return readPayload(lines, body, { content: 'any' })
}

/** Largest body in bytes that is parsed for its claims: nearly every delivery fits, and anybody may send one. */
const MAX_CLAIMED = 65_536

/**
 * Describes the unproved claims of a refused request: event and id, at most 200 characters or null. The text for a log
 * line is `unproved: event push, delivery 72d3162e-cc78`, in which a malformed value is quoted, so that it cannot pass
 * for relay's own text.
 */
export function claimOf(
  lines: HeaderLines,
  scheme: Pick<WebhookScheme, 'event' | 'id' | 'events'>,
  body: Uint8Array,
) {
  const isRead = [...scheme.event, ...scheme.id].some(isInBody) && body.byteLength <= MAX_CLAIMED
  const payload = isRead ? parsePayload(lines, body) : undefined
  const claimed = (
    places: readonly ValueLocation[],
    form: RegExp,
  ): { value: string | null; shown: string } => {
    const place = placeOf(places, lines, payload) ?? ''
    // Undefined for a repeated header.
    const one = nameText(valueAt(place, lines, payload))
    const first = isInBody(place) ? one : lines.get(place)?.[0]
    if (typeof first !== 'string') return { value: null, shown: '(none)' }
    const value = excerpt(first)
    return { value, shown: one !== undefined && form.test(value) ? value : JSON.stringify(value) }
  }
  const [event, id] = [claimed(scheme.event, formOfEvent(scheme)), claimed(scheme.id, ID)]
  const text = `unproved: event ${event.shown}, delivery ${id.shown}`
  return { event: event.value, deliveryId: id.value, text }
}

/**
 * Parses the payload of a request. Undefined if the sender may send anything and the body is not JSON. Content-Type is
 * not signed, so it is used only for a code host.
 */
function readPayload(
  lines: HeaderLines,
  body: Uint8Array,
  { content }: { readonly content: WebhookScheme['content'] },
): unknown {
  const isFormed = content === 'payload' ? isForm(lines) : content !== 'json' && isFormBody(body)
  const json = isFormed ? firstPayload(body) : body
  if (!json && content !== 'payload') return formFields(body)
  if (!json) throw invalidEvent('the body is not a form with a payload')
  try {
    return parseJson(json)
  } catch (error) {
    if (content === 'any') return undefined
    throw invalidEvent(`the body is ${error instanceof SyntaxError ? error.message : 'not JSON'}`)
  }
}

function invalidEvent(why: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(why) })
}

/**
 * Checks the payload of a restored message against the event that its headers claim. `unproved` is set if the payload
 * may also belong to another event, or is of an unknown kind, such as one of a newer code host.
 * @throws RelayError `invalid_event` if it belongs to another event
 */
function proveEvent(
  event: string,
  lines: HeaderLines,
  payload: unknown,
  { event: places, events }: WebhookScheme,
): Partial<Restoration> {
  if (!events) {
    const place = placeOf(places, lines, payload)
    return place === undefined || isInBody(place) ? {} : { unproved: true }
  }
  const possible = eventsOf(payload, events)
  if (possible.length > 0 && !possible.includes(event))
    throw invalidEvent(`the payload is of ${possible.join(' or ')}, not of the event that the header names`)
  if (possible.length !== 1) return { unproved: true }
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
  scheme: Pick<WebhookScheme, 'action' | 'repo' | 'number' | 'events'>,
): Pick<Delivery, 'action' | 'repo' | 'number' | 'ref'> {
  const textAt = (places: readonly ValueLocation[], maxLength = MAX_LENGTH): string | null => {
    const isName = (value: unknown): value is string =>
      typeof value === 'string' && value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
    return places.map((place) => valueAt(place, lines, payload)).find(isName) ?? null
  }
  const numbers = scheme.number.map((place) => valueAt(place, lines, payload))
  const number = numbers.find(
    (value) => typeof value === 'number' && Number.isSafeInteger(value) && value > 0,
  )
  const ref = scheme.events ? (textAt(['$.ref'], MAX_REF_LENGTH) ?? textAt(['$.release.tag_name'])) : null
  return {
    action: textAt(scheme.action),
    repo: textAt(scheme.repo),
    number: typeof number === 'number' ? number : null,
    ...(ref !== null && { ref }),
  }
}

/**
 * Removes headers with credentials. For an edited copy, adds the number of its original, which a request from outside
 * cannot claim.
 */
function storedHeaders(
  headers: readonly Header[],
  scheme: WebhookScheme,
  editedFrom: number | undefined,
): readonly Header[] {
  const tokens = tokenHeaders(scheme)
  const kept = headers.filter(
    ([name]) =>
      !CREDENTIAL_HEADERS.test(name) &&
      !isEditedHeader(name) &&
      !(tokens.size > 0 && tokens.has(name.toLowerCase())),
  )
  return editedFrom === undefined ? kept : [...kept, [EDITED_HEADER, String(editedFrom)]]
}
