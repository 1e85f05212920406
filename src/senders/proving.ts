import { firstPayload, isFormType } from '../http/forms.js'
import type { HeaderLines } from '../http/headers.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { VerifiedBy } from '../journal/types.js'
import { readContent } from './content.js'
import { bodyClaim, type JwtRules } from './jwt.js'
import { decodeJwt } from './token-body.js'
import type { JwtVerdict } from './jwt-proof.js'
import { findOwnProof, findProof, jwtIn, proofIn, proofsFor } from './proof.js'
import type { WebhookRequest } from './request.js'
import type { SignedRequest } from './template.js'
import type { Proof, WebhookScheme } from './scheme.js'

/** Scheme and secrets that verify deliveries. */
export interface SigningConfig {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
}

/** Result of a verification. `proof` is undefined if the scheme needs none. */
export interface Verification {
  readonly by: VerifiedBy
  readonly proof: Proof | undefined
}

/** A received request, its headers by name. */
export interface IndexedRequest extends Pick<WebhookRequest, 'body' | 'query' | 'path' | 'payloadUrl'> {
  readonly lines: HeaderLines
}

/**
 * Finds the secret that made the signature, or undefined. Nothing else decides, and a repeated header counts as
 * missing.
 */
export function verifySignature(
  request: IndexedRequest,
  { scheme, secrets }: SigningConfig,
): Verification | undefined {
  if (scheme.proofs.length === 0) return { by: 'none', proof: undefined }
  const signable = signableOf(request, scheme)
  if (!signable) return undefined
  const { current, previous } = secrets
  const proof = findProof(current, signable, scheme)
  if (proof) return { by: 'current', proof }
  const earlier = previous && findProof(previous, signable, scheme)
  if (earlier) return { by: 'previous', proof: earlier }
  const own = findOwnProof(secrets, signable, scheme)
  return own && { by: 'own', proof: own }
}

/**
 * Finds the secret or key that made the token of a request, by a scheme that has one.
 * @throws RelayError `unavailable` if the sender's keys cannot be fetched
 */
export async function proveToken(
  request: IndexedRequest,
  config: SigningConfig,
): Promise<Verification | undefined> {
  const found = findToken(request, config)
  const verdict = await found?.verdict()
  return found && verdict && 'by' in verdict ? { by: verdict.by, proof: found.proof } : undefined
}

/** The token of a request by a scheme that has one, with the proof that names its place. */
export interface FoundToken {
  readonly token: string
  readonly jwt: JwtRules
  readonly proof: Proof
  /** @throws RelayError `unavailable` if the sender's keys cannot be fetched */
  readonly verdict: () => Promise<JwtVerdict>
}

/** Finds the token of a request. Undefined for a scheme without one, and for a request that has none. */
export function findToken(
  request: IndexedRequest,
  { scheme, secrets }: SigningConfig,
): FoundToken | undefined {
  const signable = signableOf(request, scheme)
  const proof = signable && proofIn(signable, proofsFor(secrets.current, scheme))
  const token = proof && jwtIn(signable, proof)
  if (token === undefined || !proof?.jwt) return undefined
  const { jwt, url = request.payloadUrl } = proof
  const { body, query } = request
  return {
    token,
    jwt,
    proof,
    async verdict() {
      const { proveJwt } = await import('./jwt-proof.js')
      return proveJwt(token, jwt, secrets, { body, url, query })
    },
  }
}

/**
 * True if the token of a request, which proves nothing yet, names this body by its digest. It shows which bytes the
 * sender had, as a signature does.
 */
export function namesBody(request: IndexedRequest, { scheme, secrets }: SigningConfig): boolean {
  const signable = signableOf(request, scheme)
  const proof = signable && proofIn(signable, proofsFor(secrets.current, scheme))
  const token = proof && jwtIn(signable, proof)
  const digest = proof?.jwt?.digest
  if (!digest || token === undefined) return false
  return decodeJwt(token)?.claims[digest.claim] === bodyClaim(request.body, digest)
}

/** The parts of a request that can be signed. Undefined if it has no bytes that its sender signs. */
export function signableOf(
  { lines, body, query, path, payloadUrl }: IndexedRequest,
  scheme: WebhookScheme,
): SignedRequest | undefined {
  const signed = signedBytes(lines, body, scheme)
  let content: { readonly value: unknown } | undefined
  const payload = (): unknown => (content ??= readContent(body)).value
  return signed && { lines, signed, query, path, payloadUrl, payload }
}

/**
 * Bytes that the signature covers: the body or, for a sender that signs it, the payload of a form, if it comes first.
 * Undefined if there are none.
 */
export function signedBytes(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: WebhookScheme,
): Uint8Array | undefined {
  return isForm(lines) && formSignature === 'payload' ? firstPayload(body) : body
}

/**
 * True if the Content-Type, which is not signed, says that a delivery's body is a form.
 */
export function isForm(lines: HeaderLines): boolean {
  return isFormType(lines.get('content-type')?.[0])
}
