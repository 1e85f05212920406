import { isUtf8 } from 'node:buffer'
import type { Answer } from '../../replay/send.js'
import { type Paint, printable } from '../output.js'

/** What became of one request. */
export interface Result {
  readonly name: string
  readonly event: string
  readonly delivery: string
  readonly ok: boolean
  readonly expected: string
  readonly answer: Answer
}

/** Of an answer that was not wanted, as much as fits a line. */
const MAX_TOLD = 120

/** `ok   push.json  200  31ms`, `FAIL push.json  500  12ms  expected 2xx: {"error":"…"}`; names are that wide. */
export function resultLine(result: Result, width: number, paint: Paint): string {
  const { name, ok, expected, answer } = result
  const verdict = ok ? paint.green('ok  ') : paint.red('FAIL')
  const head = `${verdict} ${printable(name).padEnd(width)}  ${answer.status ?? '-'}  ${Math.round(answer.ms)}ms`
  return ok ? head : `${head}  expected ${expected}${told(answer)}`
}

export function resultObject({ answer, ...result }: Result): Record<string, unknown> {
  const { status, ms, error, body } = answer
  const bytes = Buffer.from(body)
  const text = isUtf8(bytes) ? { answer: bytes.toString() } : { answerBase64: bytes.toString('base64') }
  return { type: 'result', ...result, status, ms: Math.round(ms), error, ...text }
}

/** Why there was no answer, or how it begins. */
export function told({ error, body }: Pick<Answer, 'error' | 'body'>): string {
  const text = printable((error ?? Buffer.from(body).toString()).trim())
  if (text === '') return ''
  return `: ${text.length > MAX_TOLD ? `${text.slice(0, MAX_TOLD)}…` : text}`
}
