import { type HeaderLines, singleValue } from '../http/headers.js'
import { memberOf } from '../json/parse.js'

/**
 * Location of a value in a request: a header's lower-case name, a pair in one (`stripe-signature#t`), or a member of
 * the JSON (`$.issue.number`).
 */
export type ValueLocation = string

/** Description of how one header proves a delivery. */
export interface Proof {
  /** Lower-case name of the header. */
  readonly header: string
  /** Text before each signature, such as `sha256=`. */
  readonly prefix: string
  /** Separator of several signatures in the header. One that matches is enough. */
  readonly separator?: ' ' | ','
  /** HMAC algorithm. With `token`, the header contains the secret itself, which proves nothing about the body. */
  readonly algorithm: 'sha256' | 'sha1' | 'sha512' | 'token'
  readonly encoding: 'hex' | 'base64'
  /**
   * Template of the signed text, made of `{timestamp}`, `{id}` and `{body}`. It must divide in one way only: see {@link
   * ambiguity}.
   */
  readonly signed: string
  /** Header of `{id}`. */
  readonly id?: ValueLocation
  /** The signed time: in a header, whose value is `{timestamp}`, or in a member of the body. */
  readonly time?: SignedTime
  /** Form of the secrets that this proof applies to. Default: all. */
  readonly secretForm?: RegExp
  /**
   * Encoding of the key. With `base64`, the secret after `whsec_` is decoded if it is valid base64. Default: the
   * secret's UTF-8.
   */
  readonly key?: 'base64'
}

/**
 * Splits a template into text and parts in turn, with text first and last: `v0:{timestamp}:{body}` becomes `v0:`,
 * `{timestamp}`, `:`, `{body}` and an empty text.
 */
export function piecesOf(signed: string): string[] {
  return signed.split(/(\{\w+\})/)
}

/**
 * Explains why text signed with this template could be divided into its parts in more than one way. Undefined if it
 * could not. An ambiguous signature would also prove another id, time or body, as soon as a part contains the separator
 * behind it.
 */
export function ambiguity(signed: string): string | undefined {
  const pieces = piecesOf(signed)
  for (let at = 1; at + 2 < pieces.length; at += 2) {
    const [part = '', separator = '', next = ''] = pieces.slice(at)
    if (part === '{body}')
      return `needs {body} at the end of signed=: a body may contain what stands before ${next}`
    if (separator === '') return `needs text between ${part} and ${next} in signed=, such as a dot`
    // Ids are mostly UUIDs, also those made by relay.
    if (part === '{id}' && /^[a-z\d-]+$/i.test(separator))
      return 'needs text after {id} in signed= that no id contains, such as a dot'
    if (part === '{timestamp}' && /^\d/.test(separator))
      return 'needs text that is no digit after {timestamp} in signed='
  }
  return undefined
}

/** A time that the signature covers. */
export interface SignedTime {
  readonly place: ValueLocation
  /** Milliseconds per unit. */
  readonly unit: 1 | 1000
  /** Largest difference from the current time, in milliseconds. */
  readonly tolerance: number
}

/** Styles in which code hosts write JSON. `webhook/encodings.ts` defines the names. */
export type Style = 'compact' | 'indented' | 'indented-go' | 'one-space-go'

/** Part of a scheme that verifies a delivery. */
export interface ProofScheme {
  /**
   * Proofs of a delivery. Of those that apply to the secret, the first whose header is present counts. Empty: a
   * delivery proves nothing.
   */
  readonly proofs: readonly Proof[]
}

/** Description of how a sender names, writes and signs a delivery. */
export interface WebhookScheme extends ProofScheme {
  /** Further signatures that the sender sends and relay does not need. */
  readonly also?: readonly Proof[]
  /**
   * Locations of the event's name. The first with a value counts: one in the signed JSON comes before a header. Empty:
   * every delivery is a `webhook`.
   */
  readonly event: readonly ValueLocation[]
  /** Locations of the action, which is appended to the event's name after a dot. */
  readonly action: readonly ValueLocation[]
  /** Locations of the delivery's id. */
  readonly id: readonly ValueLocation[]
  /** Replacement for a missing id: the body's digest. Undefined: such a request is refused. */
  readonly idOr?: 'digest'
  /** Location of the id of the hook that sent the delivery. */
  readonly hook?: ValueLocation
  readonly repo: readonly ValueLocation[]
  /** Locations of the number of an issue or a pull request. */
  readonly number: readonly ValueLocation[]
  /** Content that a form's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
  /**
   * Accepted bodies. `json`: JSON alone. `payload`: also forms, by Content-Type, with JSON in their first field.
   * `fields`: JSON, or a form. `any`: bodies of any other kind, too.
   */
  readonly content: 'json' | 'payload' | 'fields' | 'any'
  /** Member that the response to it must repeat. Slack requires this when an address is entered. */
  readonly challenge?: ValueLocation
  /**
   * Field that is `1` in an unsigned form with which the sender tests an address. The response is 200, and the form is
   * not stored.
   */
  readonly check?: string
  /** Description of the right secret, as the end of a sentence, for a user who has configured another one. */
  readonly secretHint?: string
  /** Events of the sender. Undefined: relay has no table of them. */
  readonly events?: EventTable
  /** Style in which the JSON of an event is written. */
  readonly style: (event: string) => Style
  /** Headers of a synthesized delivery, in the sender's spelling, without those that prove it. */
  readonly headers: (event: string, id: string) => Record<string, string>
}

/** Events of a code host by name, read from a table by `codehost/events.ts`. */
export type EventTable = ReadonlyMap<string, EventSpec>

export interface EventSpec {
  /** Members that identify the event's payload; see `codehost/events.ts`. Undefined: no payload proves the event. */
  readonly marks: readonly string[] | undefined
  /** True for an event without a distinctive member. It matches only a payload that no other event matches. */
  readonly bare: boolean
  /**
   * Marks of payloads without a time or id, where equal bytes can report two occurrences. Undefined: the event has no
   * such payloads.
   */
  readonly repeatable: readonly string[] | undefined
  /**
   * Actions of the event: none, some, or any (`*`). Undefined: the code host does not send the event to hooks that
   * relay makes.
   */
  readonly actions: readonly string[] | undefined
}

/** Header names that relay accepts from every code host. The code host's own names take precedence. */
export const GENERIC_EVENT = 'x-provider-event'
export const GENERIC_DELIVERY = 'x-provider-delivery'

/** True if a value is in the JSON, which a signature of the body covers. */
export function isInBody(place: ValueLocation): boolean {
  return place.startsWith('$.')
}

/** Reads the value at a location of a request. Undefined if there is none, for a repeated header, and for null. */
export function valueAt(place: ValueLocation, lines: HeaderLines, payload: unknown): unknown {
  if (isInBody(place)) return memberOf(payload, place.slice(2)) ?? undefined
  const [name = '', key] = place.split('#')
  const value = singleValue(lines, name)
  if (key === undefined) return value
  const pair = value?.split(',').find((each) => each.trim().startsWith(`${key}=`))
  return pair?.trim().slice(key.length + 1)
}

/**
 * Converts an integer that names something to text, since some senders count their deliveries. Other values are
 * returned unchanged.
 */
export function nameText(value: unknown): unknown {
  return Number.isSafeInteger(value) ? String(value) : value
}
