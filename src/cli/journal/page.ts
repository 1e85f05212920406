import { isUtf8 } from 'node:buffer'
import type { Entry } from '../../journal/delivery.js'
import type { Attempt } from '../../journal/hand-on.js'
import { attemptWords } from '../attempt-line.js'
import { eventName, placeName } from '../delivery-line.js'
import { type Paint, printable } from '../output.js'
import { localTime } from './instant.js'
import { readPayload } from './payload.js'
import { prettyJson } from './pretty-json.js'
import type { TargetProgress } from './progress.js'

/** The lines that show all of an entry to a person. What came from outside cannot rewrite the terminal. */
export function entryPage(entry: Entry, progress: readonly TargetProgress[], paint: Paint): string[] {
  const title = `#${entry.n}  ${eventName(entry)}  ${placeName(entry)}`.trimEnd()
  return [
    paint.bold(title),
    '',
    ...facts(entry).map(([name, text]) => `${paint.dim(name.padEnd(12))}${printable(text)}`),
    '',
    paint.dim('headers'),
    ...entry.headers.map(([name, value]) => printable(`  ${name}: ${value}`)),
    '',
    ...bodyLines(entry, paint),
    ...progress.flatMap((target) => ['', ...targetLines(target, paint)]),
    ...(progress.length === 0 ? ['', paint.dim('handed on to no target')] : []),
  ]
}

function facts({
  receivedAt,
  provider,
  deliveryId,
  hookId,
  verifiedBy,
  restored,
  duplicates,
}: Entry): [string, string][] {
  return [
    ['received', localTime(receivedAt)],
    ['from', `${provider}${hookId === '' ? '' : `, hook ${hookId}`}, delivery ${deliveryId}`],
    ['verified', `with the ${verifiedBy} webhook secret`],
    ...(restored ? [['restored', `${restored.how}, from what a tunnel left of it`] as [string, string]] : []),
    ['duplicates', String(duplicates)],
  ]
}

function bodyLines(entry: Entry, paint: Paint): string[] {
  const { body, n } = entry
  const payload = readPayload(entry)
  const size = `${body.byteLength} bytes`
  if (payload) {
    const kind = payload.form ? 'a form, which holds' : 'JSON'
    return [paint.dim(`body (${size}): ${kind}`), ...indented(prettyJson(payload.text))]
  }
  const bytes = Buffer.from(body)
  return isUtf8(bytes)
    ? [paint.dim(`body (${size})`), ...indented(bytes.toString().split('\n'))]
    : [paint.dim(`body (${size}): not text; relay show ${n} --body gives it`)]
}

function targetLines({ label, handOn, attempts }: TargetProgress, paint: Paint): string[] {
  const { state, reason } = handOn
  const color = { succeeded: paint.green, failed: paint.red, waiting: paint.yellow }[state]
  const why = reason === undefined ? '' : `: ${printable(reason)}`
  return [
    `→ ${printable(label)}  ${color(state)}${why}`,
    ...attempts.flatMap((attempt) => attemptLines(attempt, paint)),
  ]
}

function attemptLines(attempt: Attempt, paint: Paint): string[] {
  const { at, error, count, answer } = attempt
  const words = [
    localTime(at),
    attemptWords(attempt),
    ...(error ? [error] : []),
    ...(count > 1 ? [`${count} times`] : []),
  ]
  return [`  ${printable(words.join('  '))}`, ...answerLines(answer).map((line) => paint.dim(`    ${line}`))]
}

/** Enough to see what a target said; `--json` gives all that was kept. */
const MOST_LINES = 10
const WIDEST = 200

function answerLines(answer: Uint8Array): string[] {
  const text = Buffer.from(answer).toString().trimEnd()
  if (text === '') return []
  const lines = text.split(/\r?\n/)
  const shown = lines
    .slice(0, MOST_LINES)
    .map((line) => (line.length > WIDEST ? `${printable(line.slice(0, WIDEST))}…` : printable(line)))
  return lines.length > MOST_LINES ? [...shown, '…'] : shown
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${printable(line)}`)
}
