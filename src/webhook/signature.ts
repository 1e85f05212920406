import { firstPayload, isFormType } from '../base/bytes.js'
import { isCodeHost, type SourceSettings, type WebhookSecrets } from '../base/settings.js'
import { schemeOf } from '../codehost/schemes.js'
import type { HeaderLines } from '../http/headers.js'
import type { VerifiedBy } from '../journal/types.js'
import { hasProof, provenWith } from '../schemes/proof.js'
import type { Proof, WebhookScheme } from '../schemes/scheme.js'

/** How the deliveries of one source are signed. */
export interface Sender {
  readonly scheme: WebhookScheme
  readonly secrets: WebhookSecrets
}

/** A source of deliveries, such as the code host. */
export interface Source extends Sender {
  readonly name: string
  /** The scheme as the settings and the journal write it. */
  readonly schemeText: string
}

/** @throws RelayError `settings` as `schemeOf` */
export function sourceOf({ name, scheme, secrets }: SourceSettings): Source {
  return { name, schemeText: scheme, scheme: schemeOf(scheme), secrets }
}

/** What relay takes deliveries from, by name. */
export type Sources = ReadonlyMap<string, Source>

/** The path of a source's address. */
export function pathOf(source: string): string {
  return isCodeHost(source) ? '/webhook' : `/webhook/${source}`
}

/** What proved a request. `proof`: undefined where the scheme needs none. */
export interface Proven {
  readonly by: VerifiedBy
  readonly proof: Proof | undefined
}

/** Which of the secrets made the signature; undefined if none did. Nothing else decides, and a header given twice is as good as none. */
export function provenBy(
  lines: HeaderLines,
  body: Uint8Array,
  { scheme, secrets: { current, previous } }: Sender,
): Proven | undefined {
  if (scheme.proofs.length === 0) return { by: 'none', proof: undefined }
  const signed = hasProof(lines, scheme) ? signedBytes(lines, body, scheme) : undefined
  if (!signed) return undefined
  const request = { lines, signed }
  const proof = provenWith(current, request, scheme)
  if (proof) return { by: 'current', proof }
  const earlier = previous && provenWith(previous, request, scheme)
  return earlier && { by: 'previous', proof: earlier }
}

/** The bytes that the signature covers: the body, or the payload in a form of a sender that signs that, where it comes first. Undefined if none does. */
export function signedBytes(
  lines: HeaderLines,
  body: Uint8Array,
  { formSignature }: Pick<WebhookScheme, 'formSignature'>,
): Uint8Array | undefined {
  return isForm(lines) && formSignature === 'payload' ? firstPayload(body) : body
}

/** Whether a delivery's body is a form, according to its Content-Type, which is not signed. Any other body is read as JSON. */
export function isForm(lines: HeaderLines): boolean {
  return isFormType(lines.get('content-type')?.[0])
}
