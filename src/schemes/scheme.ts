import { type HeaderLines, only } from '../http/headers.js'
import { memberOf } from '../json/parse.js'

/** Where a request says something: a header's lower-case name, a pair of one (`stripe-signature#t`), a member of its JSON (`$.issue.number`). */
export type Place = string

/** How one header proves a delivery, as data. */
export interface Proof {
  /** Its lower-case name. */
  readonly header: string
  /** What stands before each signature, such as `sha256=`. */
  readonly prefix: string
  /** Between signatures, where the header may hold several. One that matches is enough. */
  readonly separator?: ' ' | ','
  /** The HMAC; `token`: the header holds the secret itself, which proves nothing about the body. */
  readonly algorithm: 'sha256' | 'sha1' | 'sha512' | 'token'
  readonly encoding: 'hex' | 'base64'
  /** What is signed, of `{timestamp}`, `{id}` and `{body}`. It must divide in one way only: see {@link ambiguity}. */
  readonly signed: string
  /** Header of `{id}`. */
  readonly id?: Place
  /** Where the signed time is: a header, whose value `{timestamp}` is, or a member of the body. */
  readonly time?: SignedTime
  /** Secrets that it is for. Default: all. */
  readonly secretForm?: RegExp
  /** `base64`: the secret, after `whsec_`, is base64 of the key, where it can be. Default: the secret's UTF-8. */
  readonly key?: 'base64'
}

/** Its text and its parts in turn, text first and last: `v0:{timestamp}:{body}` is `v0:`, `{timestamp}`, `:`, `{body}` and nothing. */
export function piecesOf(signed: string): string[] {
  return signed.split(/(\{\w+\})/)
}

/**
 * Why bytes that a template signs could be divided into its parts in more than one way; undefined if they could not. Otherwise a signature
 * would prove another id, time or body, too, as soon as a part contains what separates it from the next.
 */
export function ambiguity(signed: string): string | undefined {
  const pieces = piecesOf(signed)
  for (let at = 1; at + 2 < pieces.length; at += 2) {
    const [part = '', separator = '', next = ''] = pieces.slice(at)
    if (part === '{body}')
      return `needs {body} at the end of signed=: a body may contain what stands before ${next}`
    if (separator === '') return `needs text between ${part} and ${next} in signed=, such as a dot`
    // Ids are mostly UUIDs, relay's own too.
    if (part === '{id}' && /^[a-z\d-]+$/i.test(separator))
      return 'needs text after {id} in signed= that no id contains, such as a dot'
    if (part === '{timestamp}' && /^\d/.test(separator))
      return 'needs text that is no digit after {timestamp} in signed='
  }
  return undefined
}

/** A time that the signature covers. */
export interface SignedTime {
  readonly place: Place
  /** Milliseconds in its unit. */
  readonly unit: 1 | 1000
  /** Milliseconds that it may be before or after now. */
  readonly tolerance: number
}

/** The ways in which code hosts write JSON, by the names that `webhook/encodings.ts` gives them. */
export type Style = 'compact' | 'indented' | 'indented-go' | 'one-space-go'

/** How a sender names, writes and signs a delivery. */
export interface WebhookScheme {
  /** How a delivery is proved. Of those that fit the secret, the first whose header is there counts. None: it proves nothing. */
  readonly proofs: readonly Proof[]
  /** Signatures that it sends too, and that relay does not need. */
  readonly also?: readonly Proof[]
  /** The first place with a value counts: the JSON's, which is signed, before a header. None: every delivery is a `webhook`. */
  readonly event: readonly Place[]
  /** What may follow the event's name after a dot, where one column holds both (every sender but the code host). */
  readonly action: readonly Place[]
  /** The delivery's id. */
  readonly id: readonly Place[]
  /** What stands for the id where there is none: the body's digest; undefined where such a request is refused. */
  readonly idOr?: 'digest'
  /** The id of the hook that sent it. */
  readonly hook?: Place
  readonly repo: readonly Place[]
  /** Of an issue or a pull request. */
  readonly number: readonly Place[]
  /** What a form's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
  /**
   * What it sends. `json`: JSON alone. `payload`: also forms, as Content-Type says, that hold JSON in their first field. `fields`: JSON,
   * or a form. `any`: what is neither is stored too.
   */
  readonly content: 'json' | 'payload' | 'fields' | 'any'
  /** Member that the answer to it must hold, as Slack asks for when an address is entered there. */
  readonly challenge?: Place
  /** The field that is `1` in an unsigned form with which the sender tests an address. It is answered 200, and not stored. */
  readonly check?: string
  /** Which secret it is, as the end of a sentence, for a user who has another one. */
  readonly secretHint?: string
  /** What it sends; undefined where relay has no table of it. */
  readonly events?: EventTable
  /** How the JSON of an event is written. */
  readonly style: (event: string) => Style
  /** The headers of a made-up delivery, in the sender's spelling, without those that prove it. */
  readonly headers: (event: string, id: string) => Record<string, string>
}

/** The events of a code host, by name, as `codehost/events.ts` reads them from a table. */
export type EventTable = ReadonlyMap<string, EventSpec>

export interface EventSpec {
  /** Marks of the event's payload; see `codehost/events.ts`. Undefined: no payload proves it. */
  readonly marks: readonly string[] | undefined
  /** Has no member of its own: fits only a payload that no other event fits. */
  readonly bare: boolean
  /** Marks of payloads without a time or id of their own, so that equal bytes can mean two things that happened. Undefined: none. */
  readonly repeatable: readonly string[] | undefined
  /** None, some, or any (`*`). Undefined: the code host sends the event to no hook that relay makes. */
  readonly actions: readonly string[] | undefined
}

/** Header names that relay accepts from every code host; the code host's own wins. */
export const GENERIC_EVENT = 'x-provider-event'
export const GENERIC_DELIVERY = 'x-provider-delivery'

/** Whether a place is a member of the JSON, which a signature of the body covers. */
export function isInBody(place: Place): boolean {
  return place.startsWith('$.')
}

/** What a request says at a place; undefined if nothing. A header that is given twice says nothing, nor does null. */
export function valueAt(place: Place, lines: HeaderLines, payload: unknown): unknown {
  if (isInBody(place)) return memberOf(payload, place.slice(2)) ?? undefined
  const [name = '', key] = place.split('#')
  const value = only(lines, name)
  if (key === undefined) return value
  const pair = value?.split(',').find((each) => each.trim().startsWith(`${key}=`))
  return pair?.trim().slice(key.length + 1)
}

/** A value that names something, as text: senders of one's own count their deliveries. Anything else as it is. */
export function asName(value: unknown): unknown {
  return Number.isSafeInteger(value) ? String(value) : value
}
