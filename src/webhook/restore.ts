import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../base/bytes.js'
import { RelayError } from '../base/errors.js'
import type { HeaderLines } from '../http/headers.js'
import { MAX_DEPTH } from '../json/text.js'
import { ownMember } from '../json/parse.js'
import { type EncodingId, formsOf, type Way, waysOf, type WrittenForm } from './encodings.js'
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

/** Ways of that length, and of a short body. Anybody may write a body that has the same length in many ways. */
const MAX_OTHERS = 3
/** Bytes: to try one more way takes less than to put a message off, which is read again then. */
const SHORT = 1024
/**
 * Bytes of all ways together for each byte of compact JSON. A flat object takes 11, in six layouts, five also with a newline at the end.
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
  next: () => Promise<unknown> = setImmediate,
): Promise<{ readonly restored?: RestoredBody | undefined; readonly isAll: boolean }> {
  return tryWays(message, lines, options, { next, likely })
}

async function tryWays(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  { next, likely }: { readonly next: () => Promise<unknown>; readonly likely?: Likely },
): Promise<{ readonly restored?: RestoredBody; readonly isAll: boolean }> {
  const { maxBody, scheme } = options
  if (!hasProof(lines, scheme)) return { isAll: true }
  const choice = likely && new Choice(likely, ownStyle(message, lines, options))
  /** Bytes that may still be written. */
  let left: number | undefined
  let [isAll, tried, tooLarge] = [true, 0, 0]
  const fits = (size: number): boolean => {
    left ??= Math.max(MIN_WORK, MAX_WORK * size)
    if (size > maxBody) tooLarge++
    return size <= Math.min(left, maxBody)
  }
  try {
    for (const candidate of candidates(message, isForm(lines) ? scheme.formSignature : undefined)) {
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
  // All layouts are the same.
  if (typeof value !== 'object') return 'compact'
  const names = scheme.event.map((place) => valueAt(place, lines, value))
  return scheme.style(names.find((name) => typeof name === 'string') ?? '')
}

/** Chooses the likely ones of the ways that are offered in order. */
class Choice {
  /** The ways that are likely by name, and still to come. */
  readonly #sought: Set<string>
  readonly #own: EncodingId
  readonly #length: number
  #others = 0

  constructor({ last, length }: Likely, own: EncodingId) {
    this.#sought = new Set(last === undefined || NOT_CHOSEN.has(last) ? [own] : [own, last])
    this.#own = own
    this.#length = length
  }

  takes({ encoding, size, isExact }: Candidate): boolean {
    if (encoding === undefined || this.#sought.delete(encoding)) return true
    const isShort = size <= SHORT && (encoding === OTHER_FORM || encoding === `${this.#own}-newline`)
    return isExact && (isShort || size === this.#length) && ++this.#others <= MAX_OTHERS
  }

  /** Whether no other will be taken, but perhaps one of a short body. */
  get isDone(): boolean {
    return this.#sought.size === 0 && (Number.isNaN(this.#length) || this.#others >= MAX_OTHERS)
  }
}

const NOT_CHOSEN: ReadonlySet<RestoreMethod> = new Set(['raw', 'text', 'form'])
const OTHER_FORM = 'other-form'

/** A body that may have been signed. */
interface Candidate extends Pick<Way, 'size' | 'isExact' | 'write'> {
  readonly how: RestoreMethod
  /** How its JSON is written, or that its form is not written as most are; undefined if relay does not choose that. */
  readonly encoding?: EncodingId | `${EncodingId}-newline` | typeof OTHER_FORM | undefined
  /** Finds its exact size, where `size` is less. It writes the JSON for that, but no form. */
  readonly measure?: () => WrittenForm
}

/** `form`: what the signature of a form covers; undefined if the body is none. */
function* candidates(
  { value, raw }: MessageBody,
  form: 'body' | 'payload' | undefined,
): Generator<Candidate> {
  if (raw) yield form === 'payload' ? newForm(raw) : given('raw', raw)
  if (raw || value === undefined) return
  // A server that could not read the body sends it as a string.
  if (typeof value === 'string') yield given('text', Buffer.from(value))
  // The value of a form has all its fields, or is the JSON in its field `payload`.
  const payload = form && ownMember(value, 'payload')
  if (form && typeof payload === 'string') {
    const [first, ...others] = formsOf(Buffer.from(payload))
    if (first) yield { how: 'form', isExact: true, ...first }
    if (form === 'body') yield* others.map(otherForm)
    return
  }
  for (const way of waysOf(value)) yield* form ? inForms(way, form) : asJson(way)
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

/** The ways in which GitHub, which signs forms, writes the JSON in them. */
const FORM_ENCODINGS: ReadonlySet<EncodingId> = new Set(['compact', 'compact-upper'])

/** Those that are not written as most are come only where the first was likely. */
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

/** Writes a new form: the signature proves only the payload, not other fields or how the form was encoded. The bytes if they are no such form. */
function newForm(form: Uint8Array): Candidate {
  const payload = formPayload(form)
  if (!payload || !isUtf8(payload)) return given('form', form)
  return { how: 'form', isExact: true, ...formsOf(payload)[0] }
}
