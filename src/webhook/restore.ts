import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../base/bytes.js'
import { RelayError } from '../base/errors.js'
import type { HeaderLines } from '../http/headers.js'
import { MAX_DEPTH } from '../json/text.js'
import { ownMember } from '../json/parse.js'
import { type EncodingId, FORMS, type Way, waysOf } from './encodings.js'
import { hasProof } from '../schemes/proof.js'
import { valueAt } from '../schemes/scheme.js'
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

/** How a body was written. */
export type RestoreMethod = 'raw' | 'text' | 'form' | EncodingId | `${EncodingId}-newline`

export interface RestoredBody {
  /** The bytes that the sender signed. */
  readonly body: Uint8Array
  /** `raw`: from the server's copy of the bytes. `text`: from a string that is all. Otherwise by writing a form, or the JSON in this way. */
  readonly how: RestoreMethod
}

/** What makes a way to write a body likely, besides how its sender writes. */
export interface Likely {
  /** How the last body was written that came from there. */
  readonly last: RestoreMethod | undefined
  /** Bytes of the body, as the Content-Length says that a server passes on; NaN if it says nothing. */
  readonly length: number
}

/** Ways of that length. Anybody may write a body that has the same length in many ways. */
const MAX_OF_LENGTH = 3
/**
 * Bytes of all ways together for each byte of compact JSON. A flat object takes 11, in six layouts, of which five also end with a newline.
 * The ways of all senders that relay knows by name come first, and take less than 24, in text that each of them escapes otherwise.
 */
const MAX_WORK = 24
/** Bytes: 256 KiB, which any body may take, so that nearly all are tried in all ways. */
const MIN_WORK = 262_144

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again: the first way to write it that the signature
 * matches. Undefined if none does, so that nothing is restored that the HMAC does not prove. A signature that is absent or malformed
 * costs nothing; a wrong one costs at most 44 hashes, of at most {@link MAX_WORK} times the bytes of the JSON. Calls `next` after each,
 * which by default lets the event loop run.
 * @throws RelayError `too_large` if every way is larger than `maxBody`; `invalid_event` if the value is nested too deep.
 */
export async function restore(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  next: () => Promise<unknown> = setImmediate,
): Promise<RestoredBody | undefined> {
  return (await tryWays(message, lines, options, { next })).restored
}

/**
 * The same in the likely ways alone: as its sender writes, as the last one was written, and those of the length that its sender announced.
 * A wrong signature costs at most six hashes. `isAll`: there are no other ways.
 * @throws RelayError as {@link restore}, if there are no other ways
 */
export async function restoreLikely(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  likely: Likely,
): Promise<{ readonly restored?: RestoredBody | undefined; readonly isAll: boolean }> {
  return tryWays(message, lines, options, { next: setImmediate, likely })
}

async function tryWays(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  { next, likely }: { readonly next: () => Promise<unknown>; readonly likely?: Likely },
): Promise<{ readonly restored?: RestoredBody; readonly isAll: boolean }> {
  const { maxBody, scheme } = options
  if (!hasProof(lines, scheme)) return { isAll: true }
  const isLikely = likely && isLikelyOf(likely, ownStyle(message, lines, options))
  /** Bytes that may still be written. */
  let left: number | undefined
  let [isAll, tried, tooLarge] = [true, 0, 0]
  try {
    for (const candidate of candidates(message, isForm(lines) ? scheme.formSignature : undefined)) {
      left ??= Math.max(MIN_WORK, MAX_WORK * candidate.size)
      if (candidate.size > Math.min(left, maxBody)) {
        if (candidate.size > maxBody) tooLarge++
        continue
      }
      if (isLikely?.(candidate) === false) {
        isAll = false
        continue
      }
      const written = candidate.write()
      const body = typeof written === 'string' ? Buffer.from(written) : written
      left -= body.byteLength
      if (body.byteLength > maxBody) tooLarge++
      else if (provenBy(lines, body, options)) return { restored: { body, how: candidate.how }, isAll }
      else tried++
      await next()
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    const cause = new Error(`JSON is nested more than ${MAX_DEPTH} deep`, { cause: error })
    throw new RelayError('invalid_event', 'Invalid event', { cause })
  }
  if (isAll && tried === 0 && tooLarge > 0) throw new RelayError('too_large', 'Request too large')
  return { isAll }
}

/** How the sender writes the JSON of the event that a request names. */
function ownStyle({ value }: MessageBody, lines: HeaderLines, { scheme }: RestoreOptions): EncodingId {
  const names = scheme.event.map((place) => valueAt(place, lines, value))
  return scheme.style(names.find((name) => typeof name === 'string') ?? '')
}

function isLikelyOf({ last, length }: Likely, own: EncodingId): (candidate: Candidate) => boolean {
  let ofLength = 0
  return ({ encoding, size, isExact }) =>
    encoding === undefined ||
    encoding === own ||
    encoding === last ||
    (isExact && size === length && ++ofLength <= MAX_OF_LENGTH)
}

/** A body that may have been signed. */
interface Candidate {
  readonly how: RestoreMethod
  /** How its JSON is written; undefined if relay does not choose that. */
  readonly encoding?: Exclude<RestoreMethod, 'raw' | 'text' | 'form'>
  /** Its bytes, or fewer, if they are not known before it is written. Those of the first are the fewest. */
  readonly size: number
  readonly isExact: boolean
  readonly write: () => Uint8Array | string
}

/** `form`: what the signature of a form covers; undefined if the body is none. */
function* candidates(
  { value, raw }: MessageBody,
  form: 'body' | 'payload' | undefined,
): Generator<Candidate> {
  if (raw) yield form === 'payload' ? written('form', newForm(raw)) : written('raw', raw)
  if (raw || value === undefined) return
  // A server that could not read the body sends it as a string.
  if (typeof value === 'string') yield written('text', value)
  // The value of a form has all its fields, or is the JSON in its field `payload`.
  const payload = form && ownMember(value, 'payload')
  if (form && typeof payload === 'string') {
    for (const body of formsOf(payload, form === 'body')) yield written('form', body)
    return
  }
  for (const way of waysOf(value)) yield* form ? inForms(way, form) : asJson(way)
}

function written(how: RestoreMethod, body: Uint8Array | string): Candidate {
  return { how, size: Buffer.byteLength(body), isExact: true, write: () => body }
}

function* asJson({ id, newline, size, isExact, write }: Way): Generator<Candidate> {
  let text: Buffer | undefined
  const once = (): Buffer => (text ??= write())
  yield { how: id, encoding: id, size, isExact, write: once }
  if (!newline) return
  const encoding = `${id}-newline` as const
  yield { how: encoding, encoding, size: size + 1, isExact, write: () => Buffer.concat([once(), LINE_END]) }
}

const LINE_END = Buffer.from('\n')

/** The ways in which GitHub, which signs forms, writes the JSON in them. */
const FORM_ENCODINGS: ReadonlySet<EncodingId> = new Set(['compact', 'compact-upper'])

function* inForms({ id, size, write }: Way, form: 'body' | 'payload'): Generator<Candidate> {
  let forms: readonly string[] | undefined
  const all = form === 'body' && FORM_ENCODINGS.has(id)
  const once = (): readonly string[] => (forms ??= [...formsOf(write().toString(), all)])
  // Some write the same.
  for (let at = 0; at < (forms?.length ?? 1); at++)
    yield { how: 'form', encoding: id, size, isExact: false, write: () => once()[at] ?? '' }
}

/** The text in a form, in all ways or in the likeliest. */
function formsOf(payload: string, all: boolean): Set<string> {
  return new Set(FORMS.slice(0, all ? FORMS.length : 1).map((write) => write(payload)))
}

/** Writes a new form: the signature proves only the payload, not other fields or how the form was encoded. The bytes if they are no such form. */
function newForm(form: Uint8Array): Uint8Array | string {
  const [write] = FORMS
  const payload = formPayload(form)
  return payload && write && isUtf8(payload) ? write(Buffer.from(payload).toString()) : form
}
