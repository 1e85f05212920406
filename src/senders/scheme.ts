import { decodeUserinfo } from '../base/address.js'
import type { NumberKind, OnDuplicate } from '../journal/types.js'
import { canonicalHeaderName, type HeaderLines, singleValue } from '../http/headers.js'
import { ownMember } from '../json/parse.js'
import type { HashAlgorithm, KeyAlgorithm } from './algorithms.js'
import type { JwtRules } from './jwt.js'
import type { PublicForm } from './keys.js'
import type { TimeUnit } from './time.js'
import { TokenBody } from './token-body.js'

/**
 * Location of a value in a request: a header's lower-case name; a part of one, by its key (`stripe-signature#t`) or its
 * number from 1 (`recurly-signature#1`); a member of the JSON or a field of the form (`$.issue.number`); a parameter of
 * the query (`?token`); a segment of the path behind the source's address, by its number from 1 (`/1`); the body itself,
 * if it is a token (`$`), whose claims are members then.
 */
export type ValueLocation = string

/** Where the number of an issue or a pull request is, if they have numbers of their own. */
export interface NumberLocation {
  readonly place: ValueLocation
  readonly kind: NumberKind
  /** Mark of the payloads that have it there, as in a table of events. Undefined: any. */
  readonly mark?: string
}

/** How signatures are written. `HEX` is hex in upper case; base64url has padding or none. */
export const ENCODINGS = ['hex', 'HEX', 'base64', 'base64url'] as const

/** Description of how one place of a request proves a delivery. */
export interface Proof {
  /** Location of the signatures. One in the body cannot cover the body. */
  readonly place: ValueLocation
  /** Text before each signature, such as `sha256=`. */
  readonly prefix: string
  /**
   * Text between the name of the key, which stands before each signature, and the signature. The secret is then
   * `name:key`.
   */
  readonly keyName?: string
  /** Separator of several signatures, or of what else is in the header. One signature that matches is enough. */
  readonly separator?: Separator
  /** True if each of several signatures has a line of the header of its own. {@link separator} divides joined lines. */
  readonly inLines?: true
  /**
   * Hash of an HMAC, or a signature with a key pair: then the secret of the source is the sender's public key. With
   * `jwt`, the place contains a token that a key made, by the rules in {@link Proof.jwt}. With `token`, the place contains the secret itself, which proves nothing about the body; with base64, it is written so
   * (HTTP Basic, whose secret is `user:password`).
   */
  readonly algorithm: HashAlgorithm | KeyAlgorithm | 'token' | 'jwt'
  readonly encoding: (typeof ENCODINGS)[number]
  /**
   * Template of the signed text, made of {@link PARTS} and of locations in the body or the query (`{$.amount.value}`). It
   * must divide in one way only: see `ambiguity` in template.ts.
   */
  readonly signed: string
  /** The one location in {@link signed} whose value may contain the text that separates it from the next. */
  readonly open?: ValueLocation
  /** Location of a list. Each of its members has a signature; locations in the body begin there. */
  readonly each?: ValueLocation
  /** Parameter with the SHA-256 of the body in hex, which the signature covers as a part of the address. */
  readonly digest?: ValueLocation
  /** True if `{path}` includes the query, and both are escaped again, as Contentful's package does it. */
  readonly escapesPath?: true
  /** Header that names the headers of `{headers}`, itself among them, with commas between. */
  readonly headerList?: ValueLocation
  /** Header of `{id}`. */
  readonly id?: ValueLocation
  /** The signed time: in a header, whose value is `{timestamp}`, or in a member of the body. */
  readonly time?: SignedTime
  /** How the fields of a form are joined in `{fields}`, sorted by name. Default: name and value, with nothing between. */
  readonly fields?: FieldTexts
  /** Address that the sender was given, for `{url}` and `{path}`, with its query. Default: the one of the source. */
  readonly url?: string
  /** Form of the secrets that this proof applies to. Default: all. */
  readonly secretForm?: RegExp
  /**
   * Encoding of the key. A secret that is not in this encoding is used as text; before base64, `whsec_` is removed.
   * `sha1`: the key is the SHA-1 of the secret. Default: the secret's UTF-8.
   */
  readonly key?: 'base64' | 'hex' | 'sha1'
  /** Rules for the token of `jwt`. */
  readonly jwt?: JwtRules
  /** How the setting of a program takes the public key. Default: PEM. */
  readonly keyForm?: PublicForm
  /** A header with signature and time, as the sender writes it. Default: the time first, with nothing after a separator. */
  readonly layout?: string
}

export type Separator = ' ' | ',' | ';' | '&'

/** Texts after the name and after the value of each field of a form. */
export interface FieldTexts {
  readonly afterName: string
  readonly between: string
}

/** A time that the signature covers. */
export interface SignedTime {
  readonly place: ValueLocation
  readonly unit: TimeUnit
  /** Largest difference from the current time, in milliseconds. Infinity: any time is accepted. */
  readonly tolerance: number
}

/** Styles in which code hosts write JSON. `encodings.ts` defines the names. */
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
  /** Further signatures of the sender, which relay does not need. */
  readonly also?: readonly Proof[]
  /**
   * Locations of the event's name. The first with a value counts: one in the signed JSON comes before a header. Empty:
   * every delivery is a `webhook`.
   */
  readonly event: readonly ValueLocation[]
  /** Messages that are no events. Such a message names an event, but lacks these members, and gets this name instead. */
  readonly notice?: { readonly name: string; readonly lacks: readonly ValueLocation[] }
  /** How a header writes the name of an event that routes know. Default: as it is. */
  readonly eventName?: { readonly read: (text: string) => string; readonly write: (name: string) => string }
  /** Locations of the action, which is appended to the event's name after a dot. */
  readonly action: readonly ValueLocation[]
  /** Locations of the delivery's id. */
  readonly id: readonly ValueLocation[]
  /**
   * Milliseconds for which requests with equal bodies and no id are one delivery. Undefined: each is a delivery of its
   * own, since nothing shows that the sender means the same event.
   */
  readonly digestWindow?: number
  /** When a duplicate is forwarded again. Default: as the settings say. */
  readonly onDuplicate?: OnDuplicate
  /** Location of the id of the hook that sent the delivery. */
  readonly hook?: ValueLocation
  /** Further headers whose value differs for each delivery. */
  readonly made?: readonly string[]
  readonly repo: readonly ValueLocation[]
  /** Locations of the number of an issue or a pull request. */
  readonly number: readonly (ValueLocation | NumberLocation)[]
  /** Content that a form's signature covers: the body as sent, or the JSON text inside `payload`. */
  readonly formSignature: 'body' | 'payload'
  /**
   * Bodies that it sends. `json`: JSON alone. `payload`: also forms, by Content-Type, with JSON in their first field.
   * `fields`: JSON, or a form. `any`: bodies of any other kind, too. Damaged JSON is refused but for `any`, and other
   * formats for `payload` alone.
   */
  readonly content: 'json' | 'payload' | 'fields' | 'any'
  /**
   * Members of the body with a credential that proves nothing here, `*` for each of a list. They are forwarded, and not
   * shown.
   */
  readonly secretMembers?: readonly ValueLocation[]
  /** Questions that the sender asks an address. They are answered, and are no deliveries. */
  readonly handshakes?: readonly Handshake[]
  /** Milliseconds for which the sender waits for an answer, if its page says so. */
  readonly waits?: number
  /** Answer to a delivery that was taken, where the sender reads it. Default: `{"ok":true}`. */
  readonly accepted?: Accepted
  /** Description of the right secret, as the end of a sentence, for a user who has configured another one. */
  readonly secretHint?: string
  /** Places of the branch or tag that an event is about. */
  readonly ref: readonly ValueLocation[]
  /** Events of the sender. Undefined: relay has no table of them. */
  readonly events?: EventTable
  /**
   * Headers of senders that send each other's names, as code hosts do. Such a sender names each delivery, in words
   * without slashes.
   */
  readonly family?: HeaderFamily
  /** Style in which the JSON of an event is written. */
  readonly style: (event: string) => Style
  /**
   * Members that the sender writes as floating-point numbers, each after the name of the object around it: `cvss.score`.
   * A tunnel's server makes `0` of their `0.0`.
   */
  readonly floats?: readonly string[]
  /** Headers of a synthesized delivery, in the sender's spelling, without those that prove it. */
  readonly headers: (event: string, id: string) => Record<string, string>
}

/** An answer in full. */
export interface Accepted {
  /** Its Content-Type. */
  readonly type: string
  readonly text: string
}

/** A sender's question to an address, and the required answer. */
export interface Handshake {
  /** Name in lines and lists: that of the sender, or of the part that has the challenge. */
  readonly name: string
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST'
  /** Values that the request must have. */
  readonly when?: Readonly<Record<ValueLocation, string | number>>
  /** Values that it must lack. */
  readonly lacks?: readonly ValueLocation[]
  /** Members of the JSON or fields of the form: it has these and no others. */
  readonly only?: readonly string[]
  /** True if Content-Type must say that it is a form. */
  readonly isForm?: true
  /** Location of the text that the answer repeats. A request without one is no handshake. */
  readonly challenge?: ValueLocation
  /** Form of the challenge. Default: visible characters, or text that no signature of a delivery covers. */
  readonly form?: RegExp
  /** Location of the token that the user has entered at the sender, which is compared with one made of the secret. */
  readonly verifyToken?: ValueLocation
  /** True if only a request that the secret proves is a handshake. */
  readonly isSigned?: true
  /** True if the challenge is the secret with which the sender will sign. */
  readonly bringsSecret?: true
  readonly answer: HandshakeTemplate
}

/**
 * An answer, in which `{challenge}` stands for the text, `{hmac}` for its HMAC-SHA256 with the secret in hex,
 * `{hmac-base64}` for the same in base64, and `{signature}` for its signature as the sender signs deliveries.
 */
export interface HandshakeTemplate {
  readonly headers?: Readonly<Record<string, string>>
  /** Members of a JSON object. Default: {@link text}. */
  readonly json?: Readonly<Record<string, string | number | boolean>>
  /** Default: `ok`. */
  readonly text?: string
  /** 204 has no body. Default: 200. */
  readonly status?: 200 | 204
}

/** Forms of the headers that a family of senders has in common. */
export interface HeaderFamily {
  /** The family's name in a sentence. */
  readonly name: string
  readonly event: RegExp
  readonly id: RegExp
  /** Further signatures of the bytes that are signed. They are hex, HMAC-SHA256, with SHA-1 in {@link sha1}. */
  readonly signature: RegExp
  readonly sha1: string
}

/** Scheme of a code host, which always has a table of events. */
export type HostScheme = WebhookScheme & {
  readonly events: EventTable
  /** Makes a secret of the form that its hooks take. Default: 64 hexadecimal digits. */
  readonly newSecret?: () => string
  /** No code host has a secret in a body, so that it can be shown without its sender. */
  readonly secretMembers?: never
}

/** Events of a code host by name, read from a table by `events.ts`. */
export type EventTable = ReadonlyMap<string, EventSpec>

export interface EventSpec {
  /** Members that identify the event's payload; see `events.ts`. Undefined: no payload proves the event. */
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

/** A location that was read, so that each is taken apart once, not for each delivery. */
interface Place {
  readonly part: 'header' | 'body' | 'query' | 'path'
  /** Lower-case name of the header, name of the parameter, or number of the segment. Empty for the body. */
  readonly name: string
  /** Key or number of a part of a header. */
  readonly key?: string
  /** Members on the way to a value of the body. */
  readonly steps: readonly string[]
}

/** By location. As many as all schemes have: a few hundred of the table, and those that a user's settings write. */
const places = new Map<ValueLocation, Place>()

function placeOf(location: ValueLocation): Place {
  const known = places.get(location)
  if (known) return known
  const place = readPlace(location)
  places.set(location, place)
  return place
}

function readPlace(location: ValueLocation): Place {
  const rest = location.slice(1)
  if (location === '$') return { part: 'body', name: '', steps: [] }
  if (location.startsWith('$.')) return { part: 'body', name: '', steps: rest.slice(1).split('.') }
  if (location.startsWith('?')) return { part: 'query', name: rest, steps: [] }
  if (location.startsWith('/')) return { part: 'path', name: rest, steps: [] }
  const [name = '', key] = location.split('#')
  return { part: 'header', name, ...(key !== undefined && { key }), steps: [] }
}

/** True if a value is in the body, which a signature of the body covers. */
export function isInBody(location: ValueLocation): boolean {
  return placeOf(location).part === 'body'
}

/** True if a value is in the path. It is not stored: neither a secret nor a signature. */
export function isInPath(location: ValueLocation): boolean {
  return placeOf(location).part === 'path'
}

/** Steps to a member of the body. */
export function stepsOf(location: ValueLocation): readonly string[] {
  return placeOf(location).steps
}

/** Lower-case name of the header that a location is in. Undefined for one in the body, the query or the path. */
export function headerOf(location: ValueLocation): string | undefined {
  const { part, name } = placeOf(location)
  return part === 'header' ? name : undefined
}

/** Names a location in a sentence: `X-Signature`, `t= in Stripe-Signature`, `the member $.token`. */
export function placeWords(place: ValueLocation): string {
  if (place === '$') return 'the body'
  const { part, name, key } = placeOf(place)
  if (part === 'body') return `the member ${place}`
  if (part === 'query') return `the parameter ${place}`
  if (part === 'path') return `segment ${name} of the path behind the source's address`
  const header = canonicalHeaderName(name)
  if (key === undefined) return header
  return /^\d+$/.test(key) ? `part ${key} of ${header}` : `${key}= in ${header}`
}

/** The parts of a request that values are read from. */
export interface Readable {
  readonly lines: HeaderLines
  /** The body's JSON, or the fields of its form. */
  readonly payload?: unknown
  /** Without its question mark. */
  readonly query?: string | undefined
  /** Path behind the source's address, with its slash. */
  readonly path?: string | undefined
}

/** Reads the value at a location of a request. Undefined if there is none, for a repeated header, and for null. */
export function valueAt(
  place: ValueLocation,
  lines: HeaderLines,
  payload: unknown,
  query = '',
  path = '',
): unknown {
  const { part, name, key, steps } = placeOf(place)
  switch (part) {
    case 'body':
      return place === '$' ? TokenBody.textOf(payload) : (steps.reduce(ownMember, payload) ?? undefined)
    case 'path':
      return decodeUserinfo(path.split('/')[Number(name)] ?? '') || undefined
    case 'query': {
      const [value, ...others] = new URLSearchParams(query).getAll(name)
      return others.length > 0 ? undefined : value
    }
    case 'header':
    default:
      return key === undefined ? singleValue(lines, name) : partOf(singleValue(lines, name), key)
  }
}

/** Reads a part of a header by its key, or its number from 1. */
function partOf(value: string | undefined, key: string): string | undefined {
  const parts = value?.split(/[;,\s]+/).filter(Boolean)
  if (/^\d+$/.test(key)) return parts?.[Number(key) - 1]
  return parts?.find((part) => part.startsWith(`${key}=`))?.slice(key.length + 1)
}

/**
 * Converts an integer that names something to text, since some senders count their deliveries. Other values are
 * returned unchanged.
 */
export function nameText(value: unknown): unknown {
  return Number.isSafeInteger(value) ? String(value) : value
}
