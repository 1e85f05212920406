import { hash } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { formPayload } from '../base/bytes.js'
import { excerpt } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import { CREDENTIALS, type Header, type HeaderLines, indexHeaders, only } from '../http/headers.js'
import type { Journal } from '../journal/journal.js'
import { type Delivery, EDITED_HEADER, isEditedHeader } from '../journal/types.js'
import type { Plan, Receipt, Restored } from '../journal/types.js'
import { parseJson } from '../json/parse.js'
import { eventsOf, isRepeatable, memberOf } from '../codehost/events.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type WebhookScheme } from '../codehost/host.js'
import { isForm, provenBy, type Senders, signedBytes } from './signature.js'

/** A received request: every header line, and the body's exact bytes. */
export interface WebhookRequest {
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** Where a request came from. */
export interface From {
  /** The name of its sender. */
  readonly source: string
  /**
   * How the bytes of a tunnel's message were restored. Anybody who knows the channel may have written the headers of such a request, so
   * its payload must fit its event.
   */
  readonly restored?: string | undefined
  /** Set if a user edited and sent it: the number of the entry that it is a copy of, and its targets if not those of the routes. */
  readonly edited?: { readonly from: number; readonly targets?: readonly string[] | undefined }
}

export interface IntakeParts {
  readonly senders: Senders
  readonly journal: Pick<Journal, 'append'>
  /** What becomes of a delivery. Must not throw. */
  readonly plan: (delivery: Delivery) => Plan
  readonly clock?: Clock | undefined
  /** Called with each stored delivery. Must not throw: the answer does not depend on it. */
  readonly onDelivery?: ((delivery: Delivery, receipt: Receipt) => void) | undefined
}

export interface Intake {
  /**
   * Verifies a webhook request and stores it. Resolves once the delivery is on disk. Reads nothing but the signature until that
   * matches. Deliveries are stored in the order of the calls.
   * @throws RelayError `invalid_signature` if no configured secret made the signature; `invalid_event` if the event header, the
   * delivery header or the body is invalid; `storage` if it could not be stored, so that the sender may try again.
   */
  receive(request: WebhookRequest, from: From): Promise<Receipt>
}

/** The single entry point for deliveries, over HTTP and through a tunnel. */
export function createIntake(parts: IntakeParts): Intake {
  const { journal, clock = systemClock, onDelivery } = parts
  return {
    async receive(request, from) {
      const delivery = verified(request, from, parts.senders, clock())
      const plan = parts.plan(delivery)
      const targets = from.edited?.targets ?? plan.targets
      const receipt = await journal.append(delivery, { ...plan, targets }).catch((cause: unknown) => {
        throw new RelayError('storage', 'Delivery could not be stored', { cause })
      })
      onDelivery?.(delivery, receipt)
      return receipt
    },
  }
}

/** The delivery in a request that one of its sender's secrets signed. */
function verified(
  { headers, body }: WebhookRequest,
  { source, restored: how, edited }: From,
  senders: Senders,
  receivedAt: number,
): Delivery {
  const lines = indexHeaders(headers)
  const sender = senders(source)
  const verifiedBy = sender && provenBy(lines, body, sender)
  if (!verifiedBy) throw new RelayError('invalid_signature', 'Invalid signature')
  const { scheme } = sender
  const identity = readIdentity(lines, scheme)
  const payload = readPayload(lines, body, scheme)
  const restored =
    how === undefined
      ? undefined
      : {
          how,
          sha256: hash('sha256', signedBytes(lines, body, scheme) ?? body, 'base64url'),
          ...proveEvent(identity.event, payload, scheme),
        }
  return {
    receivedAt,
    provider: source,
    ...identity,
    ...summarize(payload, scheme),
    headers: storedHeaders(headers, edited?.from),
    body,
    verifiedBy,
    ...(restored && { restored }),
  }
}

/** The sender's names of an event, a delivery and, if it has one, a hook. */
type Identity = Pick<Delivery, 'event' | 'deliveryId' | 'hookId'>

/** GitHub and Gitea name events in lower-case words. Other providers use spaces and colons (`Push Hook`). */
const EVENT = /^[A-Za-z0-9_.: -]{1,100}$/
/** Visible ASCII. Providers send a UUID. */
const ID = /^[\x21-\x7e]{1,200}$/

function readIdentity(lines: HeaderLines, scheme: WebhookScheme): Identity {
  const read = (name: string, form: RegExp): string => {
    const value = only(lines, name)
    if (value === undefined || !form.test(value))
      throw invalidEvent(`the header ${name} is missing, repeated or malformed`)
    return value
  }
  const { event, delivery } = identityHeaders(lines, scheme)
  const { hookHeader, eventName = (value) => value } = scheme
  return {
    event: eventName(read(event, EVENT)),
    deliveryId: read(delivery, ID),
    hookId: hookHeader !== undefined && lines.has(hookHeader) ? read(hookHeader, ID) : '',
  }
}

/** The names of the headers. Those that any provider may send count only where the sender's own are absent. */
function identityHeaders(lines: HeaderLines, { eventHeader, idHeaders }: WebhookScheme) {
  const either = (own: readonly [string, ...string[]], generic: string): string =>
    own.find((name) => lines.has(name)) ?? (lines.has(generic) ? generic : own[0])
  return { event: either([eventHeader], GENERIC_EVENT), delivery: either(idHeaders, GENERIC_DELIVERY) }
}

/** What a refused request claims to be. Anybody can write these headers. */
export interface Claim {
  /** At most 200 characters; null without the header. */
  readonly event: string | null
  readonly deliveryId: string | null
  /** For a log line: `unproved: event push, delivery 72d3162e-cc78`. A malformed value is quoted: it must not pass for relay's text. */
  readonly text: string
}

export function claimOf(lines: HeaderLines, scheme: WebhookScheme): Claim {
  const { event, delivery } = identityHeaders(lines, scheme)
  const first = (name: string): string | null => {
    const [value] = lines.get(name) ?? []
    return value === undefined ? null : excerpt(value)
  }
  const shown = (name: string, form: RegExp): string => {
    const value = first(name)
    if (value === null) return '(none)'
    return form.test(only(lines, name) ?? '') ? value : JSON.stringify(value)
  }
  return {
    event: first(event),
    deliveryId: first(delivery),
    text: `unproved: event ${shown(event, EVENT)}, delivery ${shown(delivery, ID)}`,
  }
}

const FIRST_FIELD = Buffer.from('payload=')

/**
 * The payload of a request that is proved. In a form that is signed as a whole it must be the first field: Content-Type is not signed,
 * and a comment in a JSON body may contain `&payload=…`.
 */
function readPayload(lines: HeaderLines, body: Uint8Array, { formSignature }: WebhookScheme): unknown {
  const isFirst =
    formSignature === 'payload' || Buffer.from(body.subarray(0, FIRST_FIELD.length)).equals(FIRST_FIELD)
  const json = !isForm(lines) ? body : isFirst ? formPayload(body) : undefined
  if (!json) throw invalidEvent('the body is not a form with a payload')
  try {
    return parseJson(json)
  } catch (error) {
    throw invalidEvent(`the body is ${error instanceof SyntaxError ? error.message : 'not JSON'}`)
  }
}

function invalidEvent(why: string): RelayError {
  return new RelayError('invalid_event', 'Invalid event', { cause: new Error(why) })
}

/**
 * What the payload of a restored message says about the event that its headers claim. `unproved` is set if the payload may also be of
 * another event, or is of a kind that relay does not know, such as one of a newer code host.
 * @throws RelayError `invalid_event` if it is of another event.
 */
function proveEvent(event: string, payload: unknown, { events }: WebhookScheme): Partial<Restored> {
  const possible = eventsOf(payload, events)
  if (possible.length > 0 && !possible.includes(event))
    throw invalidEvent(`the payload is of ${possible.join(' or ')}, not of the event that the header names`)
  if (possible.length !== 1) return { unproved: true }
  return isRepeatable(event, payload, events) ? { repeatable: true } : {}
}

/** Longer than any action and any `owner/name` that GitHub or Gitea allow. Longer text is ignored. */
const MAX_LENGTH = 256
/** `refs/heads/` and a name of 255 bytes, GitHub's limit. */
const MAX_REF_LENGTH = 'refs/heads/'.length + 255

/**
 * What listings show of a payload, which may be any JSON value: action, repository, number, and branch or tag. Without a usable value
 * it is null; `ref` is left out.
 */
export function summarize(
  payload: unknown,
  { summary }: Pick<WebhookScheme, 'summary'>,
): Pick<Delivery, 'action' | 'repo' | 'number' | 'ref'> {
  const ref = textAt(payload, ['ref'], MAX_REF_LENGTH) ?? textAt(payload, ['release.tag_name'])
  return {
    action: textAt(payload, summary.action),
    repo: textAt(payload, summary.repo),
    number: summary.number.map((path) => memberOf(payload, path)).find(isCount) ?? null,
    ...(ref !== null && { ref }),
  }
}

/** The first of the members that is text in one line. */
function textAt(payload: unknown, paths: readonly string[], maxLength = MAX_LENGTH): string | null {
  const isName = (value: unknown): value is string =>
    typeof value === 'string' && value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
  return paths.map((path) => memberOf(payload, path)).find(isName) ?? null
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

/**
 * The headers that are stored: those without credentials and, for a delivery that a user edited, the number of the entry that it is a
 * copy of. A request from outside cannot claim that: the header is not taken over from it.
 */
function storedHeaders(headers: readonly Header[], editedFrom: number | undefined): readonly Header[] {
  const kept = headers.filter(([name]) => !CREDENTIALS.test(name) && !isEditedHeader(name))
  return editedFrom === undefined ? kept : [...kept, [EDITED_HEADER, String(editedFrom)]]
}
