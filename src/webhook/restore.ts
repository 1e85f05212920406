import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../base/bytes.js'
import { RelayError } from '../base/errors.js'
import type { HeaderLines } from '../http/headers.js'
import { MAX_DEPTH } from '../json/text.js'
import { ownMember } from '../json/parse.js'
import { type EncodingId, FORMS, writings } from './encodings.js'
import { hasProof } from '../schemes/proof.js'
import { isForm, provenBy, type Sender } from './signature.js'

/** The body of a request as a tunnel's message carries it. */
export interface MessageBody {
  /** The message's `body`, parsed; undefined if it has none. */
  readonly value: unknown
  /** The body's exact bytes, if the server sends them too. Then only they count. */
  readonly raw?: Uint8Array | undefined
}

export interface RestoreOptions extends Sender {
  /** Bytes. Bounds memory: nothing larger is written. */
  readonly maxBody: number
}

export interface RestoredBody {
  /** The bytes that the sender signed. */
  readonly body: Uint8Array
  /** `raw`: from the server's copy of the bytes. `text`: from a string that is all. Otherwise by writing a form, or the JSON in this way. */
  readonly how: 'raw' | 'text' | 'form' | EncodingId | `${EncodingId}-newline`
}

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again: the first way to write it that the signature
 * matches. Undefined if none does, so that nothing is restored that the HMAC does not prove. A signature that is absent or malformed
 * costs nothing; a wrong one costs at most 44 hashes, usually 30. Lets the event loop run after each.
 * @throws RelayError `too_large` if every way is larger than `maxBody`; `invalid_event` if the value is nested too deep.
 */
export async function restore(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
): Promise<RestoredBody | undefined> {
  if (!hasProof(lines, options.scheme)) return undefined
  const { maxBody, scheme } = options
  const form = isForm(lines) ? scheme.formSignature : undefined
  let [tried, tooLarge] = [0, 0]
  try {
    for (const [how, written] of candidates(message, form, maxBody)) {
      const body = typeof written === 'string' ? Buffer.from(written) : written
      if (!body || body.byteLength > maxBody) tooLarge++
      else if (provenBy(lines, body, options)) return { body, how }
      else {
        tried++
        await setImmediate()
      }
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const cause = new Error(`JSON is nested more than ${MAX_DEPTH} deep`, { cause: error })
    throw new RelayError('invalid_event', 'Invalid event', { cause })
  }
  if (tried === 0 && tooLarge > 0) throw new RelayError('too_large', 'Request too large')
  return undefined
}

/** A body that may have been signed; undefined if it is larger than the limit. */
type Candidate = readonly [how: RestoredBody['how'], body: string | Uint8Array | undefined]

/** `form`: what the signature of a form covers; undefined if the body is none. */
function* candidates(
  { value, raw }: MessageBody,
  form: 'body' | 'payload' | undefined,
  limit: number,
): Generator<Candidate> {
  if (raw) yield form === 'payload' ? ['form', newForm(raw)] : ['raw', raw]
  if (raw || value === undefined) return
  // A server that could not read the body sends it as a string.
  if (typeof value === 'string') yield ['text', value]
  if (!form) {
    for (const { id, text, newline } of writings(value, limit)) {
      yield [id, text]
      if (newline) yield [`${id}-newline`, text && `${text}\n`]
    }
    return
  }
  // The value has all fields of the form, or is the JSON in its field `payload`.
  const payload = ownMember(value, 'payload')
  if (typeof payload === 'string') {
    yield* formsOf(payload, form === 'body')
    return
  }
  for (const { id, text } of writings(value, limit))
    if (text === undefined) yield ['form', undefined]
    else yield* formsOf(text, form === 'body' && FORM_ENCODINGS.has(id))
}

/** The ways in which GitHub, which signs forms, writes the JSON in them. */
const FORM_ENCODINGS: ReadonlySet<EncodingId> = new Set(['compact', 'compact-upper'])

/** The text in a form, in all ways or in the likeliest. */
function* formsOf(payload: string, all: boolean): Generator<Candidate> {
  const written = new Set(FORMS.slice(0, all ? FORMS.length : 1).map((write) => write(payload)))
  for (const body of written) yield ['form', body]
}

/** Writes a new form: the signature proves only the payload, not other fields or how the form was encoded. The bytes if they are no such form. */
function newForm(form: Uint8Array): Uint8Array | string {
  const [write] = FORMS
  const payload = formPayload(form)
  return payload && write && isUtf8(payload) ? write(Buffer.from(payload).toString()) : form
}
