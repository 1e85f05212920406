import { isDeepStrictEqual } from 'node:util'
import { firstPayload, isFormType } from '../http/forms.js'
import { isCodeHost, type SourceSettings, type WebhookSecrets } from '../base/settings.js'
import { schemeOf } from '../codehost/schemes.js'
import type { HeaderLines } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import { hasProof, findProof } from '../schemes/proof.js'
import type { Proof, WebhookScheme } from '../schemes/scheme.js'

/** Scheme and secrets that verify the deliveries of one source. */
export interface SigningConfig {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
}

/** A source of deliveries, such as the code host. */
export interface Source extends SigningConfig {
  readonly name: string
  /** The scheme as the settings and the journal write it. */
  readonly schemeText: string
}

/** Creates a source from its settings. @throws RelayError `settings` as `schemeOf` */
export function createSource({ name, scheme, secrets }: SourceSettings): Source {
  return { name, schemeText: scheme, scheme: schemeOf(scheme), secrets }
}

/** Sources that relay accepts deliveries from, by name. A later look may find others. */
export interface Sources {
  get(name: string): Source | undefined
  has(name: string): boolean
  values(): Iterable<Source>
}

/** The sources of a relay, which are replaced as a whole while it runs. A request that has begun keeps the source that it found. */
export class SourceTable implements Sources {
  #all: ReadonlyMap<string, Source>

  constructor(all: readonly Source[]) {
    this.#all = byName(all)
  }

  get(name: string): Source | undefined {
    return this.#all.get(name)
  }

  has(name: string): boolean {
    return this.#all.has(name)
  }

  values(): Iterable<Source> {
    return this.#all.values()
  }

  /** Returns the names of those that are new or have another scheme or secret, and of those that are gone. */
  replace(all: readonly Source[]): {
    readonly changed: readonly string[]
    readonly removed: readonly string[]
  } {
    const before = this.#all
    this.#all = byName(all)
    const changed = all.filter((source) => !isSame(source, before.get(source.name)))
    return {
      changed: changed.map(({ name }) => name),
      removed: [...before.keys()].filter((name) => !this.#all.has(name)),
    }
  }
}

function byName(all: readonly Source[]): ReadonlyMap<string, Source> {
  return new Map(all.map((source) => [source.name, source]))
}

function isSame({ schemeText, secrets }: Source, other: Source | undefined): boolean {
  const texts = ({ current, previous }: WebhookSecrets) => [current.reveal(), previous?.reveal()]
  return schemeText === other?.schemeText && isDeepStrictEqual(texts(secrets), texts(other.secrets))
}

/** Path of a source's address. */
export function pathOf(source: string): string {
  return isCodeHost(source) ? '/webhook' : `/webhook/${source}`
}

/** Result of a verification. `proof` is undefined if the scheme needs none. */
export interface Verification {
  readonly by: VerifiedBy
  readonly proof: Proof | undefined
}

/**
 * Finds the secret that made the signature, or undefined. Nothing else decides, and a repeated header counts as
 * missing.
 */
export function verifySignature(
  lines: HeaderLines,
  body: Uint8Array,
  { scheme, secrets: { current, previous } }: SigningConfig,
): Verification | undefined {
  if (scheme.proofs.length === 0) return { by: 'none', proof: undefined }
  const signed = hasProof(lines, scheme) ? signedBytes(lines, body, scheme) : undefined
  if (!signed) return undefined
  const request = { lines, signed }
  const proof = findProof(current, request, scheme)
  if (proof) return { by: 'current', proof }
  const earlier = previous && findProof(previous, request, scheme)
  return earlier && { by: 'previous', proof: earlier }
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
 * True if the Content-Type, which is not signed, says that a delivery's body is a form. Any other body is parsed as
 * JSON.
 */
export function isForm(lines: HeaderLines): boolean {
  return isFormType(lines.get('content-type')?.[0])
}
