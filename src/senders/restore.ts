import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { formPayload } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import type { HeaderLines } from '../http/headers.js'
import { MAX_DEPTH } from '../json/text.js'
import { ownMember } from '../json/parse.js'
import {
  type DeferredText,
  ENCODING_IDS,
  type EncodingId,
  type Way,
  waysOf,
  waysOfJson,
} from './encodings.js'
import { formsOf, type WrittenForm } from './form-encodings.js'
import { Numbers } from './numbers.js'
import { hasProof } from './proof.js'
import { valueAt } from './scheme.js'
import type { WebhookRequest } from './request.js'
import { type IndexedRequest, isForm, namesBody, verifySignature, type SigningConfig } from './proving.js'

/** Body of a request in a tunnel's message. */
export interface MessageBody {
  /** Parsed `body` of the message. Undefined if it has none. */
  readonly value: unknown
  /** Exact bytes of the body, if the server also sends them. Then only they are used. */
  readonly raw?: Uint8Array | undefined
  /** Size of the body in bytes, by the Content-Length that a server passes on. Default: NaN, if unknown. */
  readonly length?: number
}

export interface RestoreOptions extends SigningConfig, Pick<WebhookRequest, 'query' | 'payloadUrl'> {
  /** Largest body in bytes, which bounds memory: nothing larger is written. */
  readonly maxBody: number
}

/** Method by which a body was restored. */
export type RestoreMethod = 'raw' | 'text' | 'form' | JsonMethod | `${JsonMethod}-floats`

/** An encoding of JSON, and whether a newline ends it. */
type JsonMethod = EncodingId | `${EncodingId}-newline`

export interface RestoredBody {
  /** Bytes that the sender signed. */
  readonly body: Uint8Array
  /**
   * `raw`: the server's copy of the bytes. `text`: a string that is the whole body. `form`: written as a form.
   * Otherwise the encoding of the JSON; `-floats` if numbers are written otherwise than JavaScript writes them.
   */
  readonly how: RestoreMethod
}

/** Result of trying the likely encodings. `isAll` is true if there are no others. */
export interface LikelyRestoration {
  readonly restored?: RestoredBody | undefined
  readonly isAll: boolean
}

/** Hints which encoding of a body is likely, besides the sender's own style. */
export interface EncodingHints {
  /** Method of the last restored body from the same channel. */
  readonly last: RestoreMethod | undefined
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
/** Most texts with other numbers, and the bytes of them for each byte of the first. */
const MAX_FLOATS = 48
const MAX_FLOAT_WORK = 8
/** Most of them that are tried while others wait. */
const LIKELY_FLOATS = 2

/**
 * Restores the body of a request that a tunnel's server parsed and wrote again: the first encoding that the signature
 * matches. Undefined if none does, so that only bytes that the HMAC proves are restored. A missing or malformed
 * signature costs nothing; a wrong one costs at most 42 hashes, of at most {@link MAX_WORK} times the bytes of the
 * JSON, and {@link MAX_FLOATS} with other numbers, of at most {@link MAX_FLOAT_WORK} times. Calls `next` after each hash, which by default lets the event loop run.
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
 * announced length. A wrong signature costs at most eight hashes. `isAll` is true if there are no other encodings.
 * @throws RelayError as {@link restore}, if there are no other encodings
 */
export async function restoreLikely(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  likely: EncodingHints,
  next: () => Promise<unknown> = setImmediate,
): Promise<LikelyRestoration> {
  return tryWays(message, lines, options, { next, likely })
}

async function tryWays(
  message: MessageBody,
  lines: HeaderLines,
  options: RestoreOptions,
  { next, likely }: { readonly next: () => Promise<unknown>; readonly likely?: EncodingHints },
): Promise<LikelyRestoration> {
  const { maxBody, scheme, query, payloadUrl } = options
  if (!hasProof({ lines, query }, scheme)) return { isAll: true }
  const own = ownStyle(message, lines, options)
  const last = likely?.last && jsonMethod(likely.last)
  const choice = likely && new Choice(last, message.length, own)
  /** Bytes that may still be written. */
  let left: number | undefined
  let [isAll, tried, tooLarge] = [true, 0, 0]
  const fits = (size: number): boolean => {
    left ??= Math.max(MIN_WORK, MAX_WORK * size)
    if (size > maxBody) tooLarge++
    return size <= Math.min(left, maxBody)
  }
  const isWhole = (body: Uint8Array): boolean => hasBytes({ lines, body, query, payloadUrl }, options)
  const done = (): LikelyRestoration => {
    if (isAll && tried === 0 && tooLarge > 0) throw new RelayError('too_large', 'Request too large')
    return { isAll }
  }
  try {
    const form = isForm(lines) ? scheme.formSignature : undefined
    for (const candidate of candidates(message, own, form)) {
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
      else if (isWhole(body)) return { restored: { body, how: candidate.how }, isAll }
      else tried++
      await next()
    }
    if (form || !mayHaveFloats(message)) return done()
    isAll &&= !likely
    for (const { how, write } of withFloats(message, { ...options, own, last, isQuick: !isAll })) {
      const body = write()
      if (isWhole(body)) return { restored: { body, how: `${how}-floats` }, isAll }
      tried++
      await next()
    }
    return done()
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep(error)
    throw error
  }
}

/** True if a request has the bytes that its sender signed. A token that names them is proved by intake. */
function hasBytes(request: IndexedRequest, options: RestoreOptions): boolean {
  return verifySignature(request, options) !== undefined || namesBody(request, options)
}

function tooDeep(error: RangeError): RelayError {
  const cause = new Error(`JSON is nested more than ${MAX_DEPTH} deep`, { cause: error })
  return new RelayError('invalid_event', 'Invalid event', { cause })
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

  constructor(last: JsonMethod | undefined, length: number | undefined, own: EncodingId) {
    this.#sought = new Set(last === undefined ? [own] : [own, last])
    this.#own = own
    this.#length = length ?? NaN
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

/** The encoding of the JSON in a restored body. Undefined if it was not written as JSON. */
function jsonMethod(how: RestoreMethod): JsonMethod | undefined {
  return METHODS.find((each) => how === each || how === `${each}-floats`)
}

const METHODS: readonly JsonMethod[] = ENCODING_IDS.flatMap((id) => [id, `${id}-newline` as const])
const OTHER_FORM = 'other-form'

/** Bytes that may have been signed. */
interface Candidate extends DeferredText {
  readonly how: RestoreMethod
  /** Encoding of its JSON, or a mark for an unusual encoding of a form. Undefined if relay does not choose by it. */
  readonly encoding?: EncodingId | `${EncodingId}-newline` | typeof OTHER_FORM | undefined
  /** Computes the exact size if `size` is only a lower bound. Writes the JSON, but no form. */
  readonly measure?: () => WrittenForm
}

/** One that is JSON. */
interface JsonCandidate extends Candidate {
  readonly how: JsonMethod
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

function* asJson({ id, newline, size, isExact, write }: Way): Generator<JsonCandidate> {
  let text: Buffer | undefined
  const once = (): Buffer => (text ??= write())
  yield { how: id, encoding: id, size, isExact, write: once }
  if (!newline) return
  const encoding = `${id}-newline` as const
  yield { how: encoding, encoding, size: size + 1, isExact, write: () => Buffer.concat([once(), LINE_END]) }
}

const LINE_END = Buffer.from('\n')

/** Texts of each way that are tried before the next way, so that the likeliest ones do not use up all tries. */
const TURN = 6

/** True if a body may have numbers, by a quick check. */
function mayHaveFloats({ value, raw }: MessageBody): boolean {
  return !raw && typeof value === 'object' && /\d/.test(JSON.stringify(value))
}

interface FloatHints extends Pick<RestoreOptions, 'scheme' | 'maxBody'> {
  readonly own: EncodingId
  readonly last: JsonMethod | undefined
  /** Yields the few that are tried while other messages wait. */
  readonly isQuick: boolean
}

/**
 * Yields JSON with numbers as other languages than JavaScript write them, within bounds: texts of the announced length or, if
 * that is unknown, the likeliest few in the likely encodings.
 */
function* withFloats(message: MessageBody, hints: FloatHints): Generator<JsonCandidate> {
  let left = hints.isQuick ? LIKELY_FLOATS : MAX_FLOATS
  let work: number | undefined
  for (const candidate of allWithFloats(message, hints)) {
    if (candidate.size > hints.maxBody) continue
    work = (work ?? Math.max(MIN_WORK, MAX_FLOAT_WORK * candidate.size)) - candidate.size
    if (left-- === 0 || work < 0) return
    yield candidate
  }
}

function* allWithFloats(
  { value, length = NaN }: MessageBody,
  { own, last, scheme: { floats: known = [] }, isQuick }: FloatHints,
): Generator<JsonCandidate> {
  const json = JSON.stringify(value)
  const isKnown = !Number.isNaN(length)
  const all = [...waysOfJson(json, own)].flatMap((way) => (way.isExact ? [...asJson(way)] : []))
  const isLikely = ({ how }: JsonCandidate): boolean => how === own || how === last
  const others = isQuick || !isKnown ? [] : all.filter((way) => !isLikely(way))
  const names = known.map((name) => `"${name.replace(/.*\./, '')}":`)
  /** Found without a look at the numbers. */
  const isWorthIt = ({ size }: JsonCandidate): boolean =>
    isKnown ? length > size : names.some((name) => json.includes(name))
  const likely = all.filter((way) => isLikely(way) && (!isQuick || isWorthIt(way)))
  const ways = [...likely, ...others]
  if (ways.length === 0) return
  const numbers = new Numbers(json, known)
  function* textsOf(way: JsonCandidate): Generator<JsonCandidate> {
    for (const text of numbers.texts(isKnown ? length - way.size : undefined, isQuick))
      yield {
        ...way,
        size: way.size + text.length - json.length,
        write: () => writeAs(way.how, text, own),
      }
  }
  yield* inTurns(ways.map(textsOf))
}

/** Writes JSON in one of its possible encodings. */
function writeAs(how: JsonMethod, json: string, own: EncodingId): Buffer {
  for (const way of waysOfJson(json, own))
    for (const candidate of asJson(way)) if (candidate.how === how) return candidate.write()
  throw new Error('unreachable')
}

/** Yields {@link TURN} values of each in turn, until none has more. */
function* inTurns<T>(all: readonly Generator<T>[]): Generator<T> {
  for (let open = all; open.length > 0;) {
    const ended = new Set<Generator<T>>()
    for (const one of open)
      for (let count = 0; count < TURN; count++) {
        const next = one.next()
        if (next.done === true) {
          ended.add(one)
          break
        }
        yield next.value
      }
    open = open.filter((one) => !ended.has(one))
  }
}

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
