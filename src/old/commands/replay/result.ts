import { isUtf8 } from 'node:buffer'
import { printable } from '../../../base/printable.js'
import type { Answer } from '../../../replay/send.js'
import { green, type Line, red } from '../../output/line.js'
import { cutStart, pad } from '../../output/text-width.js'

/** The result of one request. */
export interface Result {
  readonly name: string
  readonly event: string
  readonly delivery: string
  readonly ok: boolean
  readonly expected: string
  readonly answer: Answer
}

/** Columns for the verdict, the status and the time. */
const AROUND_NAME = 20
/** Characters of an unexpected answer on a line. */
const MAX_REASON = 120

/**
 * `ok   push.json  200  31ms`, `FAIL push.json  500  12ms  expected 2xx: {"error":"…"}`; `width` is that of the
 * names, which lose their start where `columns` are too few for them.
 */
export function resultLine(result: Result, width: number, columns: number): Line {
  const { name, ok, expected, answer } = result
  const end = `${answer.status ?? '-'}  ${Math.round(answer.ms)}ms`
  const room = Math.min(width, columns - AROUND_NAME)
  const line = ` ${pad(cutStart(printable(name), room), room)}  ${end}`
  return ok ? [green('ok  '), line] : [red('FAIL'), `${line}  expected ${expected}${formatReason(answer)}`]
}

export function resultObject({ answer, ...result }: Result): Record<string, unknown> {
  const { status, ms, error, body } = answer
  const bytes = Buffer.from(body)
  const text = isUtf8(bytes) ? { answer: bytes.toString() } : { answerBase64: bytes.toString('base64') }
  return { type: 'result', ...result, status, ms: Math.round(ms), error, ...text }
}

/** Why there is no answer, or the start of the answer. */
export function formatReason({ error, body }: Pick<Answer, 'error' | 'body'>): string {
  const text = printable((error ?? Buffer.from(body).toString()).trim())
  if (text === '') return ''
  return `: ${text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text}`
}
