import { hash } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type Header, type HeaderLines, indexHeaders } from '../http/headers.js'
import type { Delivery, OnDuplicate, VerifiedBy } from '../journal/types.js'
import { type KeyKind, kindOfKey, usesKeys } from './algorithms.js'
import { readContent } from './content.js'
import { describe } from './describe.js'
import { writeJson } from './encodings.js'
import type { SignatureExplanation } from './explain.js'
import {
  answerHandshake,
  answersAnyone,
  type HandshakeRequest,
  isAnswered,
  MAX_CHALLENGE,
  verifyToken,
} from './handshake.js'
import { fillHidden, hideMembers, revealMembers } from './hidden.js'
import { isPublicKey, keyDefect, readKeyPair, writePublicKey } from './keys.js'
import {
  acceptedContent,
  type Claim,
  claimOf,
  type Identity,
  isNamedByHeaders,
  provenEvent,
  readIdentity,
  summarize,
} from './identity.js'
import {
  completeHeaders,
  givenId,
  kindOf,
  type Made,
  type MakeOptions,
  makeRequest,
  signRequest,
  tampered,
  withIdHeaders,
  withIdMembers,
} from './making.js'
import type { BodyKind } from './members.js'
import {
  hasProof,
  isBearer,
  jwtIn,
  proofIn,
  proofsFor,
  provesBody,
  signatureOf,
  signaturePattern,
  staleness,
} from './proof.js'
import { kindOfJwt } from './jwt.js'
import {
  type IndexedRequest,
  isForm,
  proveToken,
  signableOf,
  signedBytes,
  verifySignature,
} from './proving.js'
import type { Tamper, WebhookRequest } from './request.js'
import type { EncodingHints, LikelyRestoration, MessageBody, RestoredBody } from './restore.js'
import {
  type Accepted,
  type EventTable,
  headerOf,
  isInBody,
  isInPath,
  type Proof,
  type ValueLocation,
  type WebhookScheme,
} from './scheme.js'
import { givenUrl, signedText } from './template.js'
import type {
  Coverage,
  Description,
  HeaderRole,
  Proven,
  ReadRequest,
  Recorded,
  RestoreLimits,
  SecretWords,
  Sender,
  SignatureForm,
} from './sender.js'

const NONE = new Uint8Array()

/** A sender whose scheme is data: every code host, every row of the table, and each scheme that a user writes. */
export class SchemeSender implements Sender {
  readonly scheme: string
  readonly handshakeMethods: ReadonlySet<string>
  readonly #data: WebhookScheme
  readonly #roles: ReadonlyMap<string, HeaderRole>

  constructor(scheme: string, data: WebhookScheme) {
    this.scheme = scheme
    this.#data = data
    this.#roles = rolesOf(data)
    this.handshakeMethods = new Set((data.handshakes ?? []).map(({ method }) => method))
  }

  get name(): string {
    return this.scheme.split(' ', 1).join('')
  }

  get proves(): boolean {
    return this.#data.proofs.length > 0
  }

  get hasSigningSecret(): boolean {
    return this.#data.proofs.some((proof) => proof.secretForm !== undefined && !isBearer(proof))
  }

  get sendsJson(): boolean {
    return this.#data.content === 'payload' || this.#data.content === 'json'
  }

  get onDuplicate(): OnDuplicate | undefined {
    return this.#data.onDuplicate
  }

  get digestWindow(): number | undefined {
    return this.#data.digestWindow
  }

  get events(): EventTable | undefined {
    return this.#data.events
  }

  get waits(): number | undefined {
    return this.#data.waits
  }

  get accepted(): Accepted | undefined {
    return this.#data.accepted
  }

  get handshakes(): readonly string[] {
    return [...new Set((this.#data.handshakes ?? []).map(({ name }) => name))]
  }

  get bringsSecret(): boolean {
    return (this.#data.handshakes ?? []).some(({ bringsSecret }) => bringsSecret)
  }

  roleOf(header: string): HeaderRole | undefined {
    const name = header.toLowerCase()
    const { family } = this.#data
    const own = this.#roles.get(name)
    if (own !== undefined || !family) return own
    if (family.signature.test(name)) return 'signature'
    if (family.event.test(name)) return 'event'
    return family.id.test(name) ? 'id' : undefined
  }

  hideSecrets(body: Uint8Array, purpose: 'show' | 'pass on'): Uint8Array {
    const others = purpose === 'show' ? this.#data.secretMembers : []
    return hideMembers(body, [...this.#tokenMembers(), ...(others ?? [])], this.kindOf(body, ''))
  }

  revealSecrets(copy: Uint8Array, original: Uint8Array): Uint8Array {
    const places = [...this.#tokenMembers(), ...(this.#data.secretMembers ?? [])]
    return places.length === 0 ? copy : revealMembers(copy, original, places, this.kindOf(copy, ''))
  }

  /** Members with the secret itself, in each member of a list. */
  #tokenMembers(): readonly ValueLocation[] {
    return this.#data.proofs.flatMap(({ place, algorithm }) =>
      algorithm === 'token' && isInBody(place) ? [place.replaceAll(/\.\d+(?=\.)/g, '.*')] : [],
    )
  }

  withoutSecret(query: string): string {
    const names = this.#data.proofs.flatMap(({ place, algorithm }) =>
      algorithm === 'token' && place.startsWith('?') ? [place.slice(1)] : [],
    )
    if (names.length === 0) return query
    // Decoded in the same way as for the verification: a name can be escaped.
    const isSecret = (part: string): boolean =>
      [...new URLSearchParams(part).keys()].some((name) => names.includes(name))
    return query
      .split('&')
      .filter((part) => !isSecret(part))
      .join('&')
  }

  claimsOf(request: IndexedRequest): string | undefined {
    const proof = this.#data.proofs.find((each) => each.jwt && isBearer(each))
    const token = proof && jwtIn({ lines: request.lines, query: request.query }, proof)
    return token?.split('.', 2)[1]
  }

  isProof(header: string): boolean {
    const role = this.roleOf(header)
    return role === 'signature' || role === 'token'
  }

  signaturesOf(secret: Secret): readonly SignatureForm[] {
    return proofsFor(secret, this.#data).flatMap((proof): SignatureForm[] => {
      const header = headerOf(proof.place)
      const isList = proof.separator !== undefined
      return header === undefined ? [] : [{ header, pattern: signaturePattern(proof), isList }]
    })
  }

  hasSignature(request: Omit<IndexedRequest, 'body'> & { readonly body?: Uint8Array }): boolean {
    const { lines, query, path, body = NONE } = request
    return hasProof({ lines, query, path, payload: () => readContent(body).value }, this.#data)
  }

  isSignature(header: string, value: string): boolean {
    const name = header.toLowerCase()
    return this.#data.proofs.some(
      ({ algorithm, place, prefix }) =>
        algorithm !== 'token' && headerOf(place) === name && prefix !== '' && value.startsWith(prefix),
    )
  }

  get takesPath(): boolean {
    return this.#data.proofs.some(({ place }) => isInPath(place))
  }

  coverage(secret?: Secret): Coverage {
    const proofs = secret ? proofsFor(secret, this.#data) : this.#data.proofs
    if (proofs.length === 0) return 'nothing'
    if (proofs.some(isBearer)) return 'sender'
    return proofs.every(provesBody) ? 'body' : 'parts'
  }

  handshake(request: HandshakeRequest, secrets: WebhookSecrets, at: number): ReturnType<Sender['handshake']> {
    const { handshakes } = this.#data
    if (!handshakes) return undefined
    const isProved = (): boolean => {
      const proven = this.prove(request, secrets)
      return proven !== undefined && !this.#isStale(request, proven, at)
    }
    const [proof] = this.#data.proofs
    const sign = (current: Secret, text: string): string | undefined =>
      proof && signatureOf({ current }, [text], proof)
    return answerHandshake(request, handshakes, secrets, isProved, sign)
  }

  verifyToken(secret: Secret): string | undefined {
    const asksForOne = this.#data.handshakes?.some((each) => each.verifyToken !== undefined)
    return asksForOne ? verifyToken(secret) : undefined
  }

  async authenticate(request: IndexedRequest, secrets: WebhookSecrets): Promise<Proven | undefined> {
    const proven = this.prove(request, secrets)
    if (proven || !this.#data.proofs.some(({ jwt }) => jwt)) return proven
    return proveToken(request, { scheme: this.#data, secrets })
  }

  prove(request: IndexedRequest, secrets: WebhookSecrets): Proven | undefined {
    const proven = verifySignature(request, { scheme: this.#data, secrets })
    return proven?.proof && this.#isForAnyone(request, proven.proof) ? undefined : proven
  }

  /** True if anyone can get the signature of the bytes that this request's signature covers, by a handshake. */
  #isForAnyone(request: IndexedRequest, proof: Proof): boolean {
    const { handshakes } = this.#data
    if (!handshakes || !answersAnyone(handshakes)) return false
    const signable = signableOf(request, this.#data)
    const pieces = (signable && signedText(signable, proof)) ?? []
    const text = Buffer.concat(pieces.map((each) => Buffer.from(each)))
    return text.length <= MAX_CHALLENGE && isAnswered(text.toString(), handshakes)
  }

  read({ lines, body, query }: IndexedRequest, { proof }: Proven, at: number): ReadRequest {
    const scheme = this.#data
    // Checked before the body is parsed, where it is not needed for that.
    const named = isNamedByHeaders(scheme) ? this.#identity(lines, undefined, proof) : undefined
    const { value } = acceptedContent(isForm(lines), body, scheme)
    const stale = proof && staleness(proof, { lines, payload: value, query }, at)
    if (stale !== undefined)
      throw new RelayError('invalid_signature', 'Invalid signature', { cause: new Error(stale) })
    const identity = named ?? this.#identity(lines, value, proof)
    return {
      ...identity,
      ...summarize(value, lines, scheme),
      proof: () => ({
        sha256: hash('sha256', signedBytes(lines, body, scheme) ?? body, 'base64url'),
        ...provenEvent(identity.event, lines, value, scheme),
        ...(proof?.id !== undefined && { repeatable: true as const }),
      }),
    }
  }

  /** If several headers may contain the id, the signed one is used. */
  #identity(lines: HeaderLines, payload: unknown, proof: Proof | undefined): Identity {
    const id = proof?.id
    return readIdentity(lines, payload, id === undefined ? this.#data : { ...this.#data, id: [id] })
  }

  claim({ lines, body }: IndexedRequest): Claim {
    return claimOf(lines, body, this.#data)
  }

  async explain(
    request: WebhookRequest,
    secrets: WebhookSecrets,
    at: number | undefined,
  ): Promise<SignatureExplanation> {
    const { explainSignature } = await import('./explain.js')
    return explainSignature(request, { scheme: this.#data, secrets }, at)
  }

  async restore(
    message: MessageBody,
    lines: HeaderLines,
    limits: RestoreLimits,
    next?: () => Promise<unknown>,
  ): Promise<RestoredBody | undefined> {
    const { restore } = await import('./restore.js')
    return restore(message, lines, { ...limits, scheme: this.#data }, next)
  }

  async restoreLikely(
    message: MessageBody,
    lines: HeaderLines,
    limits: RestoreLimits,
    likely: EncodingHints,
    next?: () => Promise<unknown>,
  ): Promise<LikelyRestoration> {
    const { restoreLikely } = await import('./restore.js')
    return restoreLikely(message, lines, { ...limits, scheme: this.#data }, likely, next)
  }

  describe(delivery: Delivery, secret: SecretWords): Description {
    return describe(delivery, secret, this.#data)
  }

  kindOf(body: Uint8Array, event: string): BodyKind {
    return kindOf(body, event, this.#data)
  }

  write(event: string, value: unknown): string {
    return writeJson(this.#data.style(event), value)
  }

  headersOf(event: string, id: string): Header[] {
    return Object.entries(this.#data.headers(event, id))
  }

  make(body: Uint8Array, event: string | undefined, options: MakeOptions): Made {
    return makeRequest(body, event, { ...options, text: this.scheme }, this.#data)
  }

  complete(recorded: Omit<Recorded, 'deliveryId'> & { readonly deliveryId: string | undefined }): Header[] {
    return completeHeaders(recorded.headers, recorded, this.#data)
  }

  idOf(request: WebhookRequest): string | undefined {
    return givenId(request, this.#data)
  }

  signsId(secret: Secret): boolean {
    return proofsFor(secret, this.#data).some((proof) => proof.id !== undefined)
  }

  withId(request: WebhookRequest, id: string, kind: BodyKind | undefined): WebhookRequest {
    const body = kind ? withIdMembers(request, id, kind, this.#data) : request.body
    return { ...request, headers: withIdHeaders(request.headers, id, this.#data), body }
  }

  sign(request: WebhookRequest, secrets: WebhookSecrets, now: number, kind: BodyKind): WebhookRequest {
    const places = this.#tokenMembers()
    if (places.length === 0) return signRequest(request, secrets, now, kind, this.#data)
    const body = fillHidden(request.body, places, () => secrets.current.reveal(), kind)
    return signRequest({ ...request, body }, secrets, now, kind, this.#data)
  }

  canSignAs(by: VerifiedBy, { current, own }: WebhookSecrets): boolean {
    if (this.keyPairFor(current) === undefined) return true
    return by === 'own' && own !== undefined
  }

  keyPairFor(secret: Secret): KeyKind | undefined {
    const { algorithm = '', jwt } = this.#keyProof(secret) ?? {}
    if (jwt) return kindOfJwt(jwt.algorithm)
    return usesKeys(algorithm) ? kindOfKey(algorithm) : undefined
  }

  takesKey(secret: Secret): boolean {
    const proof = this.#keyProof(secret)
    return proof !== undefined && proof.jwt?.keySet === undefined
  }

  publicHalf({ current, own }: WebhookSecrets): string | undefined {
    const proof = this.#keyProof(current)
    return own && proof && writePublicKey(readKeyPair(own).publicKey, proof.keyForm ?? 'pem')
  }

  secretDefect(secret: Secret): string | undefined {
    const kind = this.keyPairFor(secret)
    if (kind !== undefined) return this.takesKey(secret) ? keyDefect(secret, kind) : undefined
    return this.proves && isPublicKey(secret) ? 'a public key, with which everybody could sign' : undefined
  }

  #keyProof(secret: Secret): Proof | undefined {
    return proofsFor(secret, this.#data).find(
      ({ algorithm, jwt }) => usesKeys(algorithm) || (jwt && kindOfJwt(jwt.algorithm) !== undefined),
    )
  }

  isStale({ headers, ...request }: WebhookRequest, proven: Proven, now: number): boolean {
    return this.#isStale({ ...request, lines: indexHeaders(headers) }, proven, now)
  }

  #isStale({ lines, body, query }: IndexedRequest, { proof }: Proven, now: number): boolean {
    if (!proof?.time && !proof?.jwt) return false
    const isInside = isInBody(proof.time?.place ?? proof.place)
    const payload = isInside ? readContent(body).value : undefined
    return staleness(proof, { lines, payload, query }, now) !== undefined
  }

  staleReason(
    request: WebhookRequest,
    secrets: WebhookSecrets,
    now: number,
    by: VerifiedBy,
  ): 'token' | 'stale' | 'late' | undefined {
    const lines = indexHeaders(request.headers)
    const proofs = proofsFor(secrets.current, this.#data)
    const payload = (): unknown => readContent(request.body).value
    const isLeftOut = (each: Proof): boolean =>
      isInPath(each.place) ||
      (isBearer(each) && !isInBody(each.place) && !lines.has(headerOf(each.place) ?? ''))
    const proof = proofIn({ ...request, lines, payload }, proofs) ?? proofs.find(isLeftOut)
    if (proof && isLeftOut(proof)) return proof.jwt && !this.canSignAs('own', secrets) ? undefined : 'token'
    if (proof?.algorithm === 'token') return undefined
    // A signature that covers an unknown address cannot be made again.
    const isKnown =
      proof !== undefined &&
      (!/\{(?:url|path)\}/.test(proof.signed) || givenUrl(request, proof) !== undefined)
    if (!isKnown || !this.isStale(request, { by, proof }, now)) return undefined
    return this.canSignAs(by, secrets) ? 'stale' : 'late'
  }

  tamper(request: WebhookRequest, part: Tamper | undefined): WebhookRequest {
    return tampered(request, part, this.#data, (name) => this.isProof(name))
  }
}

/** Roles of the headers that a scheme names. If a header has several, the first one counts. */
function rolesOf({ proofs, also = [], event, id }: WebhookScheme): ReadonlyMap<string, HeaderRole> {
  const roles = new Map<string, HeaderRole>()
  const add = (place: string | undefined, role: HeaderRole): void => {
    const name = place === undefined ? undefined : headerOf(place)
    if (name !== undefined && !roles.has(name)) roles.set(name, role)
  }
  for (const proof of proofs) add(proof.place, isBearer(proof) ? 'token' : 'signature')
  for (const { place } of also) add(place, 'signature')
  for (const place of id) add(place, 'id')
  for (const place of event) add(place, 'event')
  for (const proof of proofs) for (const part of [proof.time?.place, proof.headerList]) add(part, 'part')
  return roles
}
