import { ByteWriter } from '../../json/byte-writer.js'
import { RelayError } from '../../base/errors.js'
import { topLevelFields } from '../../json/fields.js'
import { minify } from '../../json/minify.js'
import { candidateEncodings, type EncodingId } from './encodings.js'
import type { WriteForm } from './forms.js'

/** A request's body as a tunnel's message carries it. */
export interface TunnelBody {
  /** The JSON text of the message's `body`, as the message writes it; undefined if it has none. */
  readonly json: string | undefined
  /** The body's exact bytes, if the server sends them too. */
  readonly raw?: Uint8Array | undefined
}

/**
 * How a body was restored. `raw`: from the server's copy of the bytes. `text`: from a string that is the whole body.
 * `form`: as a form. Otherwise: by writing the JSON in this encoding, with or without a newline at its end.
 */
export type RestoreMethod = 'raw' | 'text' | 'form' | EncodingId | `${EncodingId}-newline`

/** A body that may have been signed. Undefined if it is larger than the limit. */
export type Candidate = readonly [how: RestoreMethod, body: Uint8Array | undefined]

/** Far more fields than a form from a code host has. */
const MAX_FIELDS = 100
/** Encodings in which a provider that signs forms, which is GitHub, writes the JSON in them. */
const FORM_ENCODINGS: ReadonlySet<EncodingId> = new Set(['compact', 'compact-upper'])
const NEWLINE = 0x0a

/**
 * The bodies that may have been signed, the likeliest first. Each is written when it is asked for, and valid until the next
 * one is. Bodies larger than `maxBody` bytes are not tried. There are at most 41.
 * @throws RelayError `too_large` at the end, if all of them are larger than `maxBody`.
 */
export function* candidates(
  received: TunnelBody,
  forms: readonly WriteForm[],
  maxBody = Infinity,
): Generator<readonly [how: RestoreMethod, body: Uint8Array]> {
  const fits = new Set<boolean>()
  for (const [how, body] of allCandidates(received, forms, maxBody)) {
    const isSmall = body !== undefined && body.byteLength <= maxBody
    fits.add(isSmall)
    if (isSmall) yield [how, body]
  }
  if (fits.has(false) && !fits.has(true)) throw new RelayError('too_large', 'Request too large')
}

function* allCandidates(
  { json, raw }: TunnelBody,
  forms: readonly WriteForm[],
  maxBody: number,
): Generator<Candidate> {
  if (raw) {
    yield ['raw', raw]
    return
  }
  if (json === undefined) return
  // A server that could not read the body sends it as a string.
  const text = stringIn(json)
  if (text !== undefined) yield ['text', Buffer.from(text)]
  yield* forms.length > 0 ? candidateForms(json, forms, maxBody) : candidateTexts(json, maxBody)
}

function* candidateTexts(json: string, maxBody: number): Generator<Candidate> {
  const text = minify(json, { normalize: true })
  const out = new ByteWriter(text.length, maxBody)
  for (const { encoding, write } of candidateEncodings(text)) {
    const bytes = write(out)
    yield [encoding.id, bytes]
    if (!bytes || !encoding.newline) continue
    out.push(NEWLINE)
    yield [`${encoding.id}-newline`, out.bytes]
  }
}

/** For a form, the message holds either all its fields or the JSON in its field `payload`. */
function* candidateForms(json: string, forms: readonly WriteForm[], maxBody: number): Generator<Candidate> {
  const payload = payloadIn(json)
  if (payload !== undefined) {
    yield* distinctForms(Buffer.from(payload), forms)
    return
  }
  const text = minify(json, { normalize: true })
  const out = new ByteWriter(text.length, maxBody)
  for (const { encoding, write } of candidateEncodings(text)) {
    const bytes = write(out)
    if (bytes) yield* distinctForms(bytes, FORM_ENCODINGS.has(encoding.id) ? forms : forms.slice(0, 1))
    else yield ['form', undefined]
  }
}

function* distinctForms(payload: Uint8Array, forms: readonly WriteForm[]): Generator<Candidate> {
  let last: Buffer | undefined
  for (const write of forms) {
    const body = write(payload)
    if (!last?.equals(body)) yield ['form', body]
    last = body
  }
}

function payloadIn(json: string): string | undefined {
  try {
    return stringIn(topLevelFields(json, MAX_FIELDS).get('payload') ?? '')
  } catch {
    return undefined // Not an object.
  }
}

function stringIn(json: string): string | undefined {
  const value: unknown = json.trimStart().startsWith('"') ? JSON.parse(json) : undefined
  return typeof value === 'string' ? value : undefined
}
