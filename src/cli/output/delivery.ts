import { isUtf8 } from 'node:buffer'
import { shownSource } from '../../base/source-names.js'
import type { Entry, StoredRequest } from '../../journal/types.js'
import { indentJson } from '../../json/text.js'
import { bodyFormat, readContent } from '../../senders/content.js'
import { attemptFields, summaryObject, type TargetProgress } from './deliveries.js'
import { marked, Outside, outside } from './outside.js'
import { jsonLines, type Line } from './text.js'

// One delivery as a whole, with headers and body.

export function entryObject(entry: Entry, progress: readonly TargetProgress[]) {
  const { hookId, headers, body } = entry
  return marked({
    ...summaryObject({ ...entry, size: body.byteLength }, progress),
    hook: outside(hookId === '' ? null : hookId),
    headers: outside(headers.map(([name, value]) => ({ name, value }))),
    ...bytesField('body', body),
    payload: outside(readContent(entry.body).value ?? null),
    attempts: progress
      .flatMap(({ label, attempts }) => attempts.map((attempt) => ({ label, attempt })))
      .toSorted((one, other) => one.attempt.at - other.attempt.at)
      .map(({ label, attempt }) => ({
        ...attemptFields(attempt, label),
        count: attempt.count,
        headers: outside((attempt.headers ?? []).map(([name, value]) => ({ name, value }))),
        ...bytesField('answer', attempt.answer),
      })),
  })
}

/** An entry as it is shown, without the secrets in its body. */
export async function withShownBody(entry: Entry): Promise<Entry> {
  const { scheme = entry.provider, body } = entry
  // A code host has no secrets there, and the table of all senders takes a while to load.
  if (shownSource(scheme) === undefined) return entry
  const { senderOf } = await import('../../senders/senders.js')
  return { ...entry, body: senderOf(scheme).hideSecrets(body, 'show') }
}

/**
 * Makes the field of bytes from outside for a program. Bytes that are not UTF-8 are in base64, with `Base64` added to
 * the name.
 */
export function bytesField(name: string, bytes: Uint8Array): Readonly<Record<string, Outside<string>>> {
  const buffer = Buffer.from(bytes)
  const [field, encoding] = isUtf8(buffer) ? [name, 'utf8' as const] : [`${name}Base64`, 'base64' as const]
  return { [field]: new Outside(buffer.toString(encoding)) }
}

/** Formats a body for a person, indented: its JSON formatted, or its text. */
export function readableBody(request: StoredRequest): {
  /** `JSON`, or what it is in its place. Undefined for other text. */
  readonly kind: string | undefined
  readonly lines: readonly Line[]
} {
  const content = readContent(request.body)
  if (content.kind === 'json')
    return {
      kind: content.isForm ? 'JSON in a form' : 'JSON',
      lines: jsonLines(indentJson(content.text), '  '),
    }
  if (content.kind === 'token')
    return {
      kind: bodyFormat(request.body),
      lines: jsonLines(indentJson(JSON.stringify(content.value)), '  '),
    }
  const lines = Buffer.from(request.body).toString().split('\n')
  return { kind: bodyFormat(request.body), lines: lines.map((line) => `  ${line}`) }
}
