import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import type { HeaderLines } from '../http/headers.js'
import { MAX_DEPTH } from '../json/text.js'
import { ownMember } from '../json/parse.js'
import { type DeferredText, type EncodingId, type Way, waysOf } from './encodings.js'
import { formsOf, type WrittenForm } from './form-encodings.js'
import { hasProof } from '../schemes/proof.js'
import { valueAt } from '../schemes/scheme.js'
import { isForm, verifySignature, type SigningConfig } from './signature.js'

/** Body of a request in a tunnel's message. */
export interface MessageBody {
  /** Parsed `body` of the message. Undefined if it has none. */
  readonly value: unknown
  /** Exact bytes of the body, if the server also sends them. Then only they are used. */
  readonly raw?: Uint8Array | undefined
}

export interface RestoreOptions extends SigningConfig {
  /** Largest body in bytes, which bounds memory: nothing larger is written. */
  readonly maxBody: number
}

/** Method by which a body was restored. */
export type RestoreMethod = 'raw' | 'text' | 'form' | EncodingId | `${EncodingId}-newline`

export interface RestoredBody {
  /** Bytes that the sender signed. */
  readonly body: Uint8Array
  /**
   * `raw`: the server's copy of the bytes. `text`: a string that is the whole body. `form`: written as a form.
   * Otherwise the encoding of the JSON.
   */
  readonly how: RestoreMethod
}

/** Hints which encoding of a body is likely, besides the sender's own style. */
export interface EncodingHints {
  /** Method of the last restored body from the same channel. */
  readonly last: RestoreMethod | undefined
  /** Size of the body in bytes, by the Content-Length that a server passes on. NaN if unknown. */
  readonly length: number
}

/**
 * Most encodings of that length, and of a short body, that are tried. Anybody may write a body with the same length in
 * many encodings.
 */
const MAX_OTHERS = 3
/** Size in bytes up to which one more encoding costs less than putting the message off and reading it again. */
const SHORT = 1024
/**
 * Most bytes written in all encodings together, for each byte of compact JSON. A flat object takes 11, in six layouts,
 * five also with a newline at the end. The encodings of Gitea, which come first for it, take less than 24 for objects
 * in which all of them differ.
 */
const MAX_WORK = 24
/** Bytes that may be written for any body: 256 KiB, so that nearly all are tried in all encodings. */
const MIN_WORK = 262_144

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again: the first encoding that the signature
 * matches. Undefined if none does, so that only bytes that the HMAC proves are restored. A missing or malformed
 * signature costs nothing; a wrong one costs at most 42 hashes, of at most {@link MAX_WORK} times the bytes of the
 * JSON. Calls `next` after each hash, which by default lets the event loop run.
 * @throws RelayError `too_large` if every encoding is larger than `maxBody`; `invalid_event` if the value is nested too
 * deep
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
 * Like {@link restore}, but only for likely encodings: the sender's own, that of the last body, and those of the
 * announced length. A wrong signature costs at most six hashes. `isAll` is true if there are no other encodings.
 * @throws RelayError as {@link restore}, if there are no other encodings
 */
export async function restoreLikely(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  likely: EncodingHints,
  next: () => Promise<unknown> = setImmediate,
): Promise<{ readonly restored?: RestoredBody | undefined; readonly isAll: boolean }> {
  return tryWays(message, lines, options, { next, likely })
}

async function tryWays(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  { next, likely }: { readonly next: () => Promise<unknown>; readonly likely?: EncodingHints },
): Promise<{ readonly restored?: RestoredBody; readonly isAll: boolean }> {
  const { maxBody, scheme } = options
  if (!hasProof(lines, scheme)) return { isAll: true }
  const own = ownStyle(message, lines, options)
  const choice = likely && new Choice(likely, own)
  /** Bytes that may still be written. */
  let left: number | undefined
  let [isAll, tried, tooLarge] = [true, 0, 0]
  const fits = (size: number): boolean => {
    left ??= Math.max(MIN_WORK, MAX_WORK * size)
    if (size > maxBody) tooLarge++
    return size <= Math.min(left, maxBody)
  }
  try {
    for (const candidate of candidates(message, own, isForm(lines) ? scheme.formSignature : undefined)) {
      if (!fits(candidate.size)) continue
      if (choice?.takes(candidate) === false) {
        isAll = false
        if (choice.isDone) break
        continue
      }
      const measured = candidate.measure?.() ?? candidate
      if (measured !== candidate) {
        left = (left ?? 0) - candidate.size
        if (!fits(measured.size)) continue
      }
      const body = measured.write()
      left = (left ?? 0) - body.byteLength
      if (body.byteLength > maxBody) tooLarge++
      else if (verifySignature(lines, body, options)) return { restored: { body, how: candidate.how }, isAll }
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

/** Style in which the sender writes the JSON of the request's event. */
function ownStyle({ value }: MessageBody, lines: HeaderLines, { scheme }: RestoreOptions): EncodingId {
  // All layouts of a scalar are equal.
  if (typeof value !== 'object') return 'compact'
  const names = scheme.event.map((place) => valueAt(place, lines, value))
  return scheme.style(names.find((name) => typeof name === 'string') ?? '')
}

/** Chooses the likely encodings among those offered in order. */
class Choice {
  /** Encodings that are likely by name, and still to come. */
  readonly #sought: Set<string>
  readonly #own: EncodingId
  readonly #length: number
  #others = 0

  constructor({ last, length }: EncodingHints, own: EncodingId) {
    this.#sought = new Set(last === undefined || NOT_CHOSEN.has(last) ? [own] : [own, last])
    this.#own = own
    this.#length = length
  }

  takes({ encoding, size, isExact }: Candidate): boolean {
    if (encoding === undefined || this.#sought.delete(encoding)) return true
    const isShort = size <= SHORT && (encoding === OTHER_FORM || encoding === `${this.#own}-newline`)
    return isExact && (isShort || size === this.#length) && ++this.#others <= MAX_OTHERS
  }

  /** True if no other encoding will be accepted, except perhaps one of a short body. */
  get isDone(): boolean {
    return this.#sought.size === 0 && (Number.isNaN(this.#length) || this.#others >= MAX_OTHERS)
  }
}

const NOT_CHOSEN: ReadonlySet<RestoreMethod> = new Set(['raw', 'text', 'form'])
const OTHER_FORM = 'other-form'

/** Bytes that may have been signed. */
interface Candidate extends DeferredText {
  readonly how: RestoreMethod
  /** Encoding of its JSON, or a mark for an unusual encoding of a form. Undefined if relay does not choose by it. */
  readonly encoding?: EncodingId | `${EncodingId}-newline` | typeof OTHER_FORM | undefined
  /** Computes the exact size if `size` is only a lower bound. Writes the JSON, but no form. */
  readonly measure?: () => WrittenForm
}

/**
 * Yields possible bodies. `form` is the part of a form that the signature covers; undefined if the body is not a form.
 */
function* candidates(
  { value, raw }: MessageBody,
  own: EncodingId,
  form: 'body' | 'payload' | undefined,
): Generator<Candidate> {
  if (raw) yield form === 'payload' ? newForm(raw) : given('raw', raw)
  if (raw || value === undefined) return
  // A server that could not parse the body sends it as a string.
  if (typeof value === 'string') yield given('text', Buffer.from(value))
  // The value of a form has all its fields, or is the JSON in its field `payload`.
  const payload = form && ownMember(value, 'payload')
  if (form && typeof payload === 'string') {
    const [first, ...others] = formsOf(Buffer.from(payload))
    if (first) yield { how: 'form', isExact: true, ...first }
    if (form === 'body') yield* others.map(otherForm)
    return
  }
  for (const way of waysOf(value, own)) yield* form ? inForms(way, form) : asJson(way)
}

function given(how: RestoreMethod, body: Uint8Array): Candidate {
  const { buffer, byteOffset, byteLength } = body
  return { how, size: byteLength, isExact: true, write: () => Buffer.from(buffer, byteOffset, byteLength) }
}

function otherForm(form: WrittenForm): Candidate {
  return { how: 'form', encoding: OTHER_FORM, isExact: true, ...form }
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

/** Encodings in which GitHub, which signs forms, writes the JSON in them. */
const FORM_ENCODINGS: ReadonlySet<EncodingId> = new Set(['compact', 'compact-upper'])

/** Yields forms with this JSON. Unusual encodings of the form follow only if the first one was chosen. */
function* inForms({ id, size, write }: Way, form: 'body' | 'payload'): Generator<Candidate> {
  let others: readonly WrittenForm[] = []
  const measure = (): WrittenForm => {
    const [first, ...rest] = formsOf(write())
    others = rest
    return first
  }
  yield { how: 'form', encoding: id, size, isExact: false, write: () => measure().write(), measure }
  if (form === 'body' && FORM_ENCODINGS.has(id)) yield* others.map(otherForm)
}

/**
 * Writes a new form from the payload, because the signature proves neither other fields nor the form's encoding.
 * Returns the bytes unchanged if they are no such form.
 */
function newForm(form: Uint8Array): Candidate {
  const payload = formPayload(form)
  if (!payload || !isUtf8(payload)) return given('form', form)
  return { how: 'form', isExact: true, ...formsOf(payload)[0] }
}
