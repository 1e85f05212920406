import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { Header, HeaderLines } from '../http/headers.js'
import type { Delivery, OnDuplicate, Restoration, VerifiedBy } from '../journal/types.js'
import type { KeyKind } from './algorithms.js'
import type { SignatureExplanation } from './explain.js'
import type { HandshakeRequest, Handshaken } from './handshake.js'
import type { Claim } from './identity.js'
import type { Made, MakeOptions } from './making.js'
import type { BodyKind } from './members.js'
import type { IndexedRequest, Verification } from './proving.js'
import type { Tamper, WebhookRequest } from './request.js'
import type { EncodingHints, LikelyRestoration, MessageBody, RestoredBody } from './restore.js'
import type { Accepted, EventTable } from './scheme.js'

/**
 * A sender of deliveries: GitHub, Stripe, or a program whose scheme the user wrote. Everything that depends on a sender is
 * behind this interface: no other code knows its headers, places in a body or algorithms. `table.ts` has the data of those
 * with a name, `scheme-sender.ts` the implementation that reads them.
 */
export interface Sender {
  /** Scheme as written in the settings: `stripe`, `hmac header=X-Signature`. */
  readonly scheme: string
  /** Its first word, which is also the name of its examples. */
  readonly name: string
  /** False if nothing proves its deliveries. */
  readonly proves: boolean
  /** True if it signs with a secret of one form, and sends a secret of another. */
  readonly hasSigningSecret: boolean
  /** True if all its bodies are JSON, as they are or in a form. */
  readonly sendsJson: boolean
  /** When a duplicate is forwarded again. Undefined: as the settings say. */
  readonly onDuplicate: OnDuplicate | undefined
  /**
   * Milliseconds for which requests with equal bodies and no id are one delivery. Undefined: each is a delivery of its
   * own.
   */
  readonly digestWindow: number | undefined
  /** Events that it sends. Undefined: relay has no table of them. */
  readonly events: EventTable | undefined
  /** Milliseconds for which it waits for an answer. Undefined: unknown. */
  readonly waits: number | undefined
  /** Answer to a delivery that was taken. Undefined: the usual one. */
  readonly accepted: Accepted | undefined
  /** Names of its handshakes, for which a tunnel is not enough. */
  readonly handshakes: readonly string[]
  /** True if one of these brings the secret with which it signs. */
  readonly bringsSecret: boolean

  // Receiving

  /** Role of a header. Undefined for a header without one. */
  roleOf(header: string): HeaderRole | undefined
  /**
   * Hides the secrets in a body. Every other byte stays.
   * @param purpose `show`: all of them. `pass on`: the token that proves the delivery, which relay writes again where it
   * has the secret; the signature of another body would no longer match.
   */
  hideSecrets(body: Uint8Array, purpose: 'show' | 'pass on'): Uint8Array
  /** Puts back the secrets of the original that are still hidden in a copy of its body. */
  revealSecrets(copy: Uint8Array, original: Uint8Array): Uint8Array
  /** Removes from a query the parameter that is the secret itself. */
  withoutSecret(query: string): string
  /** True for a signature by name and form, where the header could also hold a credential. */
  isSignature(header: string, value: string): boolean
  /** True if its proof is in the path behind the source's address. */
  readonly takesPath: boolean
  /** Claims, in base64url, of the token that a request has and that is not stored. Undefined if it has none. */
  claimsOf(request: IndexedRequest): string | undefined
  /** True for a header that proves a delivery: a signature, or the secret itself. */
  isProof(header: string): boolean
  /** Signature headers that a request signed with this secret has, for a search in text. */
  signaturesOf(secret: Secret): readonly SignatureForm[]
  /** True if a request has a well-formed signature. Without one it is refused before any byte is hashed. */
  hasSignature(request: Omit<IndexedRequest, 'body'> & { readonly body?: Uint8Array }): boolean
  /** The part of a request that this secret proves. Without an argument: with the weakest possible secret. */
  coverage(secret?: Secret): Coverage
  /** HTTP methods of its handshakes. */
  readonly handshakeMethods: ReadonlySet<string>
  /**
   * Answers a handshake, which may be unsigned. Undefined for any other request.
   * @param at arrival, in milliseconds since 1970-01-01 UTC
   */
  handshake(
    request: HandshakeRequest,
    secrets: WebhookSecrets,
    at: number,
  ): Handshaken | undefined | Promise<Handshaken | undefined>
  /**
   * Kind of the key pair of its own that relay needs to sign as a sender with this public key does. Undefined: the
   * secret signs, or nothing does.
   */
  keyPairFor(secret: Secret): KeyKind | undefined
  /** True if the secret of a source is the sender's public key, or a key that is read like one. */
  takesKey(secret: Secret): boolean
  /** The public half of such a key pair, in the format of the sender's own key for a program's settings. */
  publicHalf(secrets: WebhookSecrets): string | undefined
  /** Explains why a text cannot be its secret or key, to follow the words "it is". Undefined if it can be. */
  secretDefect(secret: Secret): string | undefined
  /** Text to enter at the sender as its verify token. Undefined: it has none. */
  verifyToken(secret: Secret): string | undefined
  /**
   * Finds the secret or key that proves a request that was received, or undefined. May fetch the sender's keys.
   * @throws RelayError `unavailable` if they cannot be fetched
   */
  authenticate(request: IndexedRequest, secrets: WebhookSecrets): Promise<Proven | undefined>
  /**
   * {@link prove} without waiting. It never proves a token, or a request that needs a fetched key. Reads nothing else.
   */
  prove(request: IndexedRequest, secrets: WebhookSecrets): Proven | undefined
  /**
   * Reads a proven request.
   * @param at arrival, in milliseconds since 1970-01-01 UTC
   * @throws RelayError `invalid_signature` if its signed time is too far from `at`; `invalid_event` if event, id or body
   * is none of this sender
   */
  read(request: IndexedRequest, proven: Proven, at: number): ReadRequest
  /** Reads the claims of an unproved request. Never throws. */
  claim(request: IndexedRequest): Claim
  /**
   * Explains whether one of the secrets proves a request, as {@link prove} decides it, and why not.
   * @param at arrival in milliseconds since 1970-01-01 UTC. Undefined if unknown: then any signed time is accepted.
   */
  explain(
    request: WebhookRequest,
    secrets: WebhookSecrets,
    at: number | undefined,
  ): Promise<SignatureExplanation>
  /** Restores the body of a request that a tunnel's server wrote again. @throws RelayError as `restore` of restore.ts */
  restore(
    message: MessageBody,
    lines: HeaderLines,
    limits: RestoreLimits,
    next?: () => Promise<unknown>,
  ): Promise<RestoredBody | undefined>
  /** {@link restore} with the likely encodings alone. @throws RelayError as `restoreLikely` of restore.ts */
  restoreLikely(
    message: MessageBody,
    lines: HeaderLines,
    limits: RestoreLimits,
    likely: EncodingHints,
    next?: () => Promise<unknown>,
  ): Promise<LikelyRestoration>
  /** Describes for a person what proved a stored delivery. */
  describe(delivery: Delivery, secret: SecretWords): Description

  // Making

  /** Style of a body of this event, and whether it is a form. */
  kindOf(body: Uint8Array, event: string): BodyKind
  /** Writes a value as the sender writes the JSON of an event. */
  write(event: string, value: unknown): string
  /** Headers of an unsigned delivery, in the sender's spelling. */
  headersOf(event: string, id: string): Header[]
  /** Makes an unsigned delivery of a body. @throws RelayError `usage` as `makeRequest` of making.ts */
  make(body: Uint8Array, event: string | undefined, options: MakeOptions): Made
  /** Adds the headers that a hand-written recording lacks. */
  complete(recorded: Omit<Recorded, 'deliveryId'> & { readonly deliveryId: string | undefined }): Header[]
  /** Id of a request. Undefined if the sender gives none. */
  idOf(request: WebhookRequest): string | undefined
  /** True if a request signed with this secret signs its id, so that the id stays unless the body changes. */
  signsId(secret: Secret): boolean
  /** Gives a request another id: in its headers, and with `kind` in its body, too. */
  withId(request: WebhookRequest, id: string, kind: BodyKind | undefined): WebhookRequest
  /**
   * Signs a request as the sender would at `now`: with the secret, or with relay's own key for a sender that has a key
   * pair.
   * @throws RelayError `settings` if relay has no such key
   */
  sign(request: WebhookRequest, secrets: WebhookSecrets, now: number, kind: BodyKind): WebhookRequest
  /** True if relay has the key or secret that proved the delivery. False: only the sender has the key. */
  canSignAs(by: VerifiedBy, secrets: WebhookSecrets): boolean
  /** True if a receiver would refuse the signed time of a proven request at `now`. */
  isStale(request: WebhookRequest, proven: Proven, now: number): boolean
  /**
   * Reason why a stored delivery cannot be forwarded unchanged at `now`. `token`: its token, or its proof in the path, is
   * not stored. `stale`: it must be signed again. `late`: only the sender could sign it again. Undefined: it can.
   * Verifies nothing.
   */
  staleReason(
    request: WebhookRequest,
    secrets: WebhookSecrets,
    now: number,
    by: VerifiedBy,
  ): 'token' | 'stale' | 'late' | undefined
  /** Corrupts a signed request. */
  tamper(request: WebhookRequest, part: Tamper | undefined): WebhookRequest
}

/**
 * Role of a header. `token`: it is the secret itself, and is never stored. `signature`: it proves the delivery.
 * `part`: it is signed with the body. `event`, `id`: it names the event, or the delivery.
 */
export type HeaderRole = 'token' | 'signature' | 'part' | 'event' | 'id'

/**
 * `body`: the bytes of the body. `parts`: parts of the request that could also be another's. `sender`: only who sends it,
 * since the secret itself is sent. `nothing`: no secret.
 */
export type Coverage = 'body' | 'parts' | 'sender' | 'nothing'

/** Header of a signature, and the form of its value. */
export interface SignatureForm {
  readonly header: string
  /** Source of a regular expression for one signature. */
  readonly pattern: string
  /** True if others may stand before it. */
  readonly isList: boolean
}

/** Proof of a request: which secret made it, and how. */
export type Proven = Verification

/** Values of a proven request. */
export interface ReadRequest extends Pick<
  Delivery,
  'event' | 'action' | 'hookId' | 'repo' | 'number' | 'kind' | 'ref'
> {
  /** Undefined if the sender gives none. */
  readonly deliveryId: string | undefined
  /** Values that the signature proves, if the headers are not trusted. @throws RelayError `invalid_event` */
  readonly proof: () => Omit<Restoration, 'how'>
}

export interface RestoreLimits extends Pick<WebhookRequest, 'query' | 'payloadUrl'> {
  readonly secrets: WebhookSecrets
  /** Largest body in bytes, which bounds memory: nothing larger is written. */
  readonly maxBody: number
}

/** A recorded delivery. */
export interface Recorded extends WebhookRequest {
  readonly event: string
  readonly deliveryId: string
}

/** The secret that proved a delivery, in words. */
export interface SecretWords {
  readonly verifiedBy: VerifiedBy
  /** `the current webhook secret`. */
  readonly words: string
}

export interface Description {
  /** Sentences. */
  readonly proof: readonly string[]
  /** Largest age of a signed time that the sender accepts, in milliseconds. 0 if it signs none. */
  readonly tolerance: number
  /** Lower-case names of the headers that are made for each delivery. */
  readonly made: readonly string[]
  /** Place of the event's name: a header alone, a header with the action in the body, or the body. */
  readonly eventIn: 'header' | 'header and body' | 'body'
}
