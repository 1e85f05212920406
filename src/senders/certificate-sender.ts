// Senders whose requests name the address of a certificate. The certificate's key has signed the request.
import { X509Certificate } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import type { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { indexHeaders } from '../http/headers.js'
import { isSignedBy, type KeyAlgorithm, signWith } from './algorithms.js'
import type { SignatureExplanation } from './explain.js'
import { readKeyPair } from './keys.js'
import type { IndexedRequest } from './proving.js'
import type { WebhookRequest } from './request.js'
import type { Proof, WebhookScheme } from './scheme.js'
import { SchemeSender } from './scheme-sender.js'
import { isEmptySecret } from './secrets.js'
import type { Coverage, Proven } from './sender.js'
import { type Unproved, unproved } from './unproved.js'

/** The signature of a request, as the request describes it. */
export interface Signed {
  readonly signature: Uint8Array
  readonly algorithm: KeyAlgorithm
  /** Address of the certificate, as the request gives it. */
  readonly address: string
  /** The signed text for a source with this secret, which here only identifies the owner of the request. */
  readonly text: (secret: Secret) => string
  /** Owner that the request names, if the signed text does not have it. */
  readonly owner?: string
}

/** A sender with certificates at addresses of its own hosts. */
export abstract class CertificateSender extends SchemeSender {
  readonly #proof: Proof

  constructor(scheme: string, data: WebhookScheme) {
    super(scheme, data)
    const [proof] = data.proofs
    if (!proof) throw new TypeError('unreachable: a row has a proof')
    this.#proof = proof
  }

  /** Hosts of its certificates: nothing else in a request shows that they are the sender's. */
  protected abstract readonly hosts: RegExp
  /** Reads the signature of a request, or the reason why it has none. */
  protected abstract signedOf(request: IndexedRequest): Signed | Unproved
  /** Name of the value that identifies a source, for a sentence: `topic`. */
  protected abstract readonly ownerWords: string

  /** The signature covers only a part of a delivery. */
  override coverage(secret?: Secret): Coverage {
    return secret && isEmptySecret(secret) ? 'nothing' : 'parts'
  }

  override takesKey(): boolean {
    return false
  }

  override prove(request: IndexedRequest, secrets: WebhookSecrets): Proven | undefined {
    const signed = this.signedOf(request)
    if ('valid' in signed || !secrets.own) return undefined
    const { publicKey } = readKeyPair(secrets.own)
    const text = Buffer.from(signed.text(secrets.current))
    const isOwn = isSignedBy(publicKey, signed.signature, text, signed.algorithm)
    return isOwn ? { by: 'own', proof: this.#proof } : undefined
  }

  override async authenticate(request: IndexedRequest, secrets: WebhookSecrets): Promise<Proven | undefined> {
    const verdict = await this.#verdictOf(request, secrets)
    return 'by' in verdict ? verdict : undefined
  }

  override async explain(
    { headers, ...request }: WebhookRequest,
    secrets: WebhookSecrets,
    at: number | undefined,
  ): Promise<SignatureExplanation> {
    const received = { ...request, lines: indexHeaders(headers) }
    try {
      const verdict = await this.#verdictOf(received, secrets)
      if (!('by' in verdict)) return verdict
      const isLate = at !== undefined && this.isStale({ ...request, headers }, verdict, at)
      return isLate
        ? unproved('stale', 'its signed time is too far from now')
        : { valid: true, by: verdict.by }
    } catch (error) {
      if (!(error instanceof RelayError)) throw error
      return unproved(
        'unreachable_key',
        `the certificate of the sender could not be fetched: ${error.detail}`,
      )
    }
  }

  /** The bytes that relay's own key signs. */
  protected ownSignature({ own }: WebhookSecrets, text: string, algorithm: KeyAlgorithm): Buffer {
    if (own) return signWith(readKeyPair(own).privateKey, Buffer.from(text), algorithm)
    throw new RelayError(
      'settings',
      'Only the sender has the private key, and relay has made none of its own for the source: it does when the source is added',
    )
  }

  /** @throws RelayError `unavailable` if the certificate cannot be fetched */
  async #verdictOf(request: IndexedRequest, secrets: WebhookSecrets): Promise<Proven | Unproved> {
    const relays = this.prove(request, secrets)
    if (relays) return relays
    const signed = this.signedOf(request)
    if ('valid' in signed) return signed
    const { address, algorithm, owner, signature, text } = signed
    const url = parseUrl(address)
    const isTheirs =
      url?.protocol === 'https:' && url.port === '' && url.username === '' && this.hosts.test(url.hostname)
    if (!isTheirs)
      return unproved(
        'wrong_address',
        `its certificate is at ${JSON.stringify(url ? url.origin : address.slice(0, 100))}, which is none of the sender's hosts: relay does not fetch it`,
      )
    const all = [['current', secrets.current] as const, ['previous', secrets.previous] as const]
    const candidates = all.flatMap(([by, secret]) =>
      secret && !isEmptySecret(secret) ? [{ by, secret }] : [],
    )
    const owned = candidates.filter(({ secret }) => owner === undefined || owner === secret.reveal())
    if (owned.length === 0)
      return unproved(
        'wrong_claim',
        `it is of the ${this.ownerWords} ${JSON.stringify(owner?.slice(0, 200))}, and the source of another`,
      )
    const { publishedAt } = await import('./key-sets.js')
    const certificate = readCertificate(await publishedAt(address))
    if (!certificate) return unproved('unknown_key', `what is at ${url.origin} is no certificate`)
    const found = owned.find(({ secret }) =>
      isSignedBy(certificate.publicKey, signature, Buffer.from(text(secret)), algorithm),
    )
    if (found) return { by: found.by, proof: this.#proof }
    return unproved(
      'wrong_secret',
      owner === undefined
        ? `its signature is not of this request and this ${this.ownerWords}: is the ${this.ownerWords} right, or was the body changed on its way?`
        : 'its signature is not of this request: it was changed on its way',
    )
  }
}

/** Reads a certificate in PEM, the first of several. Undefined for other text. */
function readCertificate(text: string): X509Certificate | undefined {
  try {
    return new X509Certificate(text)
  } catch {
    return undefined
  }
}
