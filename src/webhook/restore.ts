import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { RelayError } from '../base/errors.js'
import type { WebhookSecrets } from '../base/settings.js'
import { topLevelFields } from '../json/fields.js'
import type { WebhookScheme } from '../providers/provider.js'
import { candidateEncodingsInPieces, type EncodingId, formInPieces, FORMS, splitText } from './encodings.js'
import { isForm, signedBytes } from './form.js'
import { type HeaderLines, only } from './headers.js'
import { isSignature, SIGNATURE_HEADER, verify } from './signature.js'

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

export interface Restored {
  readonly body: Uint8Array
  readonly how: RestoreMethod
}

export interface RestoreParts {
  readonly secrets: WebhookSecrets
  readonly scheme: Pick<WebhookScheme, 'formSignature'>
  /** Largest body, in bytes. Bounds memory: nothing larger is written. Default: no limit. */
  readonly maxBody?: number | undefined
}

/**
 * Characters. A longer JSON text is tried only in the encodings that code hosts write: each candidate takes longer, and
 * anybody may have sent the text. People who test with other programs sign shorter ones.
 */
export const MAX_FULL_SEARCH = 65_536
const CODE_HOST_ENCODINGS: ReadonlySet<EncodingId> = new Set([
  'compact',
  'compact-upper',
  'indented-go',
  'indented-go-long',
  'indented-go-replaced',
])

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again. Returns the first candidate that the
 * signature matches, so that intake accepts these bytes with these headers. Undefined if none matches: nothing is
 * restored that the HMAC does not prove.
 *
 * An absent or malformed signature costs nothing. A wrong one costs one pass over at most 31
 * candidates (about ten for a usual payload), each written only when it is tried. If the server sent the exact bytes, they are the only candidate.
 * Yields to the event loop after each candidate.
 * @throws RelayError `too_large` if every candidate is larger than `maxBody`.
 */
export async function restore(
  received: TunnelBody,
  lines: HeaderLines,
  { secrets, scheme, maxBody }: RestoreParts,
): Promise<Restored | undefined> {
  const signature = only(lines, SIGNATURE_HEADER)
  if (!isSignature(signature)) return undefined
  try {
    for (const [how, body] of candidates(received, formsOf(lines, scheme), maxBody)) {
      const signed = signedBytes(lines, body, scheme)
      if (signed && verify(signature, signed, secrets))
        return signed === body ? { body, how } : asForm(signed)
      await setImmediate()
    }
  } catch (error) {
    // Text that is not JSON has no further candidates.
    if (!(error instanceof SyntaxError)) throw error
  }
  return undefined
}

/** The form encodings that change what is signed. If the provider signs only the payload, one is enough. */
function formsOf(lines: HeaderLines, { formSignature }: RestoreParts['scheme']): typeof FORMS {
  if (!isForm(lines)) return []
  return formSignature === 'payload' ? FORMS.slice(0, 1) : FORMS
}

/** Writes a new form: the signature proves only the payload, not other fields or how the form was encoded. */
function asForm(payload: Uint8Array): Restored | undefined {
  const [write] = FORMS
  return write && isUtf8(payload)
    ? { body: Buffer.from(write(Buffer.from(payload).toString())), how: 'form' }
    : undefined
}

type Candidate = readonly [how: RestoreMethod, body: Uint8Array]
/** A text that is written on demand. `newline` is set if it may also end in a newline. */
type CandidateText = readonly [
  how: RestoreMethod,
  pieces: () => Iterable<string | Uint8Array>,
  newline?: RestoreMethod,
]

/**
 * The bodies that may have been signed, the likeliest first. Skips those larger than `maxBody` bytes.
 * @throws RelayError `too_large` at the end, if all of them were skipped.
 */
export function* candidates(
  received: TunnelBody,
  forms: typeof FORMS,
  maxBody?: number,
): Generator<Candidate> {
  const fits = new Set<boolean>()
  for (const [how, pieces, newline] of candidateTexts(received, forms)) {
    const bytes = joinBytes(newline ? withNewline(pieces()) : pieces(), maxBody)
    fits.add(bytes !== undefined)
    if (!bytes) continue
    yield [how, newline ? bytes.subarray(0, -1) : bytes]
    if (newline) yield [newline, bytes]
  }
  if (fits.has(false) && !fits.has(true)) throw new RelayError('too_large', 'Request too large')
}

/** Undefined if there are more than `maxLength` bytes; the remaining pieces are not written. */
function joinBytes(pieces: Iterable<string | Uint8Array>, maxLength = Infinity): Uint8Array | undefined {
  const all: Uint8Array[] = []
  let length = 0
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    all.push(bytes)
    length += bytes.byteLength
    if (length > maxLength) return undefined
  }
  return all.length === 1 ? all[0] : Buffer.concat(all)
}

function* withNewline(pieces: Iterable<string | Uint8Array>): Generator<string | Uint8Array> {
  yield* pieces
  yield '\n'
}

function* candidateTexts({ json, raw }: TunnelBody, forms: typeof FORMS): Generator<CandidateText> {
  if (raw) {
    yield ['raw', () => [raw]]
    return
  }
  if (json === undefined) return
  // A server that could not read the body sends it as a string.
  const text = stringIn(json)
  if (text !== undefined) yield ['text', () => [text]]
  if (forms.length > 0) yield* candidateForms(json, forms)
  else for (const [id, pieces] of likelyEncodings(json)) yield [id, pieces, `${id}-newline`]
}

/** For a form, the message holds either all its fields or the JSON in its field `payload`. */
function* candidateForms(json: string, forms: typeof FORMS): Generator<CandidateText> {
  const field = payloadIn(json)
  const payloads = field === undefined ? likelyEncodings(json) : [['form', () => splitText(field)] as const]
  const [likeliest] = forms
  for (const [, payload] of payloads)
    if (json.length > MAX_FULL_SEARCH && likeliest) yield ['form', () => formInPieces(likeliest, payload())]
    else
      for (const form of new Set(forms.map((write) => write([...payload()].join('')))))
        yield ['form', () => [form]]
}

function* likelyEncodings(json: string): ReturnType<typeof candidateEncodingsInPieces> {
  for (const candidate of candidateEncodingsInPieces(json)) {
    if (json.length > MAX_FULL_SEARCH && !CODE_HOST_ENCODINGS.has(candidate[0])) return
    yield candidate
  }
}

/** Far more fields than a form from a code host has. */
const MAX_FIELDS = 100

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
