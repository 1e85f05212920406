import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { WebhookSecrets } from '../base/settings.js'
import type { WebhookScheme } from '../providers/provider.js'
import { ENCODINGS, type EncodingId, FORMS, spellings } from './encodings.js'
import { isForm, signedBytes } from './form.js'
import { type HeaderLines, only } from './headers.js'
import { isJson } from './json.js'
import { members } from './members.js'
import { isSignature, SIGNATURE_HEADER, verify } from './signature.js'

/** What a tunnel's message still holds of a request's body. */
export interface Remains {
  /** The JSON text of the message's `body`, as the message spells it; undefined when there was none. */
  readonly json: string | undefined
  /** The body's exact bytes, where the server sends them too. */
  readonly raw?: Uint8Array | undefined
}

/**
 * From what a body was restored: the server's own copy (`raw`), a string that is the whole body (`text`), a form, or
 * the JSON written in one of the encodings, with a newline at its end or without.
 */
export type How = 'raw' | 'text' | 'form' | EncodingId | `${EncodingId}-newline`

export interface Restored {
  readonly body: Uint8Array
  readonly how: How
}

export interface RestoreParts {
  readonly secrets: WebhookSecrets
  readonly scheme: Pick<WebhookScheme, 'formSignature'>
}

/**
 * More are never tried for one message. Each costs one HMAC per secret; of a usual payload, in which few of the encodings
 * differ, it is about ten.
 */
export const MOST_CANDIDATES = 1 + ENCODINGS.length * Math.max(2, FORMS.length)

/**
 * Characters. Of a larger JSON text only what code hosts write is tried: each candidate takes longer, and anybody may have
 * sent it. People who test with other programs sign smaller ones.
 */
export const LARGE = 65_536
const OF_CODE_HOSTS: ReadonlySet<EncodingId> = new Set([
  'compact',
  'compact-upper',
  'indented-go',
  'indented-go-long',
  'indented-go-replaced',
])

/**
 * The body of a request that came through a server which reads the JSON and writes it anew: the first candidate whose
 * bytes the signature fits, so that intake, given these bytes and lines, finds it genuine. Undefined when none does:
 * nothing is ever restored that the HMAC does not prove. Does not throw.
 *
 * An absent or malformed signature costs nothing. A wrong one costs one pass over the candidates, at most
 * {@link MOST_CANDIDATES}, each written when its turn comes; where the server sent the bytes themselves, only those.
 * Between two, others have their turn.
 */
export async function restore(
  remains: Remains,
  lines: HeaderLines,
  { secrets, scheme }: RestoreParts,
): Promise<Restored | undefined> {
  const signature = only(lines, SIGNATURE_HEADER)
  if (!isSignature(signature)) return undefined
  for (const [how, body] of candidates(remains, formsOf(lines, scheme))) {
    const signed = signedBytes(lines, body, scheme)
    if (signed && verify(signature, signed, secrets)) return signed === body ? { body, how } : inForm(signed)
    await setImmediate()
  }
  return undefined
}

/** The ways of writing a form that differ in what is signed. */
function formsOf(lines: HeaderLines, { formSignature }: RestoreParts['scheme']): typeof FORMS {
  if (!isForm(lines)) return []
  return formSignature === 'payload' ? FORMS.slice(0, 1) : FORMS
}

/** Of a form only the payload is proved: other fields, or another spelling of it, are not taken over. */
function inForm(payload: Uint8Array): Restored | undefined {
  const [write] = FORMS
  return write && isUtf8(payload)
    ? { body: Buffer.from(write(Buffer.from(payload).toString())), how: 'form' }
    : undefined
}

type Candidate = readonly [how: How, body: Uint8Array]

/** What may have been signed, the likeliest first. */
export function* candidates({ json, raw }: Remains, forms: typeof FORMS): Generator<Candidate> {
  if (raw) {
    yield ['raw', raw]
    return
  }
  if (json === undefined || !isJson(json)) return
  // A server that could not read the body sends it as a string.
  const text = stringIn(json)
  if (text !== undefined) yield ['text', Buffer.from(text)]
  yield* forms.length > 0 ? written(json, forms) : spelled(json)
}

function* spelled(json: string): Generator<Candidate> {
  for (const [id, text] of likelySpellings(json)) {
    const bytes = Buffer.from(`${text}\n`)
    yield [id, bytes.subarray(0, -1)]
    yield [`${id}-newline`, bytes]
  }
}

/** Of a form the message holds either the fields, or what was in `payload`. */
function* written(json: string, forms: typeof FORMS): Generator<Candidate> {
  const field = payloadIn(json)
  const payloads = field === undefined ? likelySpellings(json) : [['form', field] as const]
  const likely = json.length > LARGE ? forms.slice(0, 1) : forms
  for (const [, payload] of payloads) {
    const tried = new Set<string>()
    for (const write of likely) {
      const form = write(payload)
      if (!tried.has(form)) yield ['form', Buffer.from(form)]
      tried.add(form)
    }
  }
}

function* likelySpellings(json: string): ReturnType<typeof spellings> {
  for (const spelling of spellings(json)) {
    if (json.length > LARGE && !OF_CODE_HOSTS.has(spelling[0])) return
    yield spelling
  }
}

function payloadIn(json: string): string | undefined {
  try {
    return stringIn(members(json).get('payload') ?? '')
  } catch {
    return undefined // Not an object.
  }
}

function stringIn(json: string): string | undefined {
  const value: unknown = json.trimStart().startsWith('"') ? JSON.parse(json) : undefined
  return typeof value === 'string' ? value : undefined
}
