import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { isFormBody, isFormType } from '../http/forms.js'
import { RelayError } from '../base/errors.js'
import { senderOf } from '../senders/senders.js'
import { type Header, endToEndHeaders } from '../http/headers.js'
import type { RecordedDelivery } from './fixture.js'
import { secretsInCommands } from './redact/commands.js'
import { partsOf } from './redact/content.js'
import { emailsIn } from './redact/emails.js'
import { secretsByForm } from './redact/forms.js'
import { secretsInLines } from './redact/lines.js'
import { secretsInMarkup } from './redact/markup.js'
import { isIdentifying, isProvingHeader } from './redact/names.js'
import { Replacements } from './redact/replacements.js'
import type { Span } from './redact/span.js'

/**
 * Deepest nesting of JSON in a string of JSON, or a form in a field of a form. Deeper content is treated as plain text.
 */
const MAX_NESTED = 20
/** Longest time in milliseconds that the work blocks the event loop, so that Ctrl-C takes effect. */
const HOLD_MS = 50
const BYTE_ORDER_MARKS = /^\uFEFF+/

/**
 * Redacts a delivery, so that it is safe to pass on. Removes the headers that prove it, and adds a key of the fixture's
 * own. Replaces e-mail addresses, tokens, and everything that its name or form identifies as a secret, in headers,
 * JSON, forms, multipart content, XML and text. Content keeps its structure, and every byte that is not replaced. Takes
 * time in proportion to the size of the body.
 * @throws RelayError `usage` for a body that is not text; the signal's reason when it aborts
 */
export async function redact(recorded: RecordedDelivery, signal: AbortSignal): Promise<RecordedDelivery> {
  const { body, headers, query, provider, scheme: text = provider } = recorded
  if (!isUtf8(body) || body.includes(0))
    throw new RelayError(
      'usage',
      'Cannot redact a body that is not text: nothing in it can be recognized. Export it without --redact, and change it by hand',
    )
  const sender = senderOf(text)
  const proves = (name: string): boolean => sender.isProof(name)
  const kept = endToEndHeaders(headers).filter(([name]) => !proves(name) && !isProvingHeader(name))
  const isForm =
    isFormBody(body) || kept.some(([name, value]) => /^content-type$/i.test(name) && isFormType(value))
  const redaction = new Redaction(signal)
  const redacted = async (): Promise<RecordedDelivery> => {
    const lines: Header[] = []
    for (const [name, value] of kept) lines.push([name, await redaction.of(value)])
    return {
      ...recorded,
      event: await redaction.of(recorded.event, { name: 'id' }),
      deliveryId: await redaction.of(recorded.deliveryId, { name: 'id' }),
      headers: lines,
      ...(query !== undefined && { query: await redaction.of(query, { isForm: true }) }),
      body: Buffer.from(await redaction.of(Buffer.from(body).toString(), { isForm })),
    }
  }
  // Runs twice, because a value that is recognized as a secret may occur earlier without its name.
  await redacted()
  redaction.repeat()
  return { ...(await redacted()), secret: randomBytes(24).toString('hex') }
}

interface About {
  /** Name of the value. */
  readonly name?: string
  readonly isForm?: boolean
  /** Number of texts that contain this one. */
  readonly depth?: number
}

class Redaction {
  readonly #replacements = new Replacements()
  readonly #signal: AbortSignal
  #since = performance.now()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Replaces the secrets found so far everywhere from now on. */
  repeat(): void {
    this.#replacements.repeat()
  }

  /** Redacts a text: each of its parts if it is structured, otherwise the plain text. */
  async of(text: string, { name = '', isForm = false, depth = 0 }: About = {}): Promise<string> {
    await this.#rest()
    const [marks = ''] = BYTE_ORDER_MARKS.exec(text) ?? []
    if (marks !== '') return marks + (await this.of(text.slice(marks.length), { name, isForm, depth }))
    const parts = depth > MAX_NESTED ? undefined : partsOf(text, isForm)
    if (!parts) return this.#plain(text, isIdentifying(name))
    const made: string[] = []
    let end = 0
    for (const part of parts) {
      const { value, isSecret } = part
      const replaced = isSecret
        ? this.#secret(value)
        : await this.of(value, { name: part.name, depth: depth + 1 })
      const raw = text.slice(part.start, part.end)
      made.push(text.slice(end, part.start), replaced === value ? raw : part.encode(replaced))
      ;({ end } = part)
    }
    return made.join('') + text.slice(end)
  }

  async #plain(text: string, identifies: boolean): Promise<string> {
    const spans: Span[] = []
    for (const found of [
      secretsInMarkup(text),
      secretsInLines(text),
      secretsInCommands(text),
      secretsByForm(text, identifies),
      emailsIn(text),
    ])
      for (const span of found) {
        if (span.email === undefined && !span.isOrdinary)
          this.#replacements.learn(text.slice(span.start, span.end))
        spans.push(span)
        if (this.#isTired) await this.#rest()
      }
    const repeated: Span[] = []
    for (const place of this.#replacements.everywhere(text)) joinLast(repeated, place)
    for (const place of repeated) spans.push(place)
    if (spans.length === 0) return text
    const made: string[] = []
    let end = 0
    for (const { start, end: past, email } of joined(spans)) {
      const value = text.slice(start, past)
      made.push(
        text.slice(end, start),
        email === undefined ? this.#replacements.secret(value) : this.#replacements.email(email),
      )
      end = past
    }
    return made.join('') + text.slice(end)
  }

  #secret(value: string): string {
    this.#replacements.learn(value)
    return this.#replacements.secret(value)
  }

  get #isTired(): boolean {
    return performance.now() - this.#since > HOLD_MS
  }

  /** Yields to signals and timers if the work has run for too long. @throws the signal's reason */
  async #rest(): Promise<void> {
    if (!this.#isTired) return
    await setImmediate()
    this.#signal.throwIfAborted()
    this.#since = performance.now()
  }
}

/** Merges overlapping spans. A span that contains another one determines the kind. */
function joined(spans: Span[]): Span[] {
  const all: Span[] = []
  for (const span of spans.toSorted((one, other) => one.start - other.start || other.end - one.end))
    joinLast(all, span)
  return all
}

/** Appends a span that ends after the last one or lies within it, and merges the two if they overlap. */
function joinLast(spans: Span[], span: Span): void {
  const last = spans.at(-1)
  if (!last || span.start >= last.end) spans.push(span)
  else if (span.end > last.end)
    spans[spans.length - 1] = { start: Math.min(last.start, span.start), end: span.end }
}
