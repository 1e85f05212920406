import { isUtf8 } from 'node:buffer'
import { type NamedTarget, shortNames } from '../../../dispatch/routes.js'
import type { Entry } from '../../../journal/types.js'
import { editedFrom } from '../../../journal/types.js'
import type { Attempt } from '../../../journal/types.js'
import { layOut } from '../../../json/text.js'
import { readPayload } from '../../../journal/payload.js'
import type { TargetProgress } from '../../journal/progress.js'
import { describeAttempt } from '../../output/attempt-line.js'
import { eventName, placeName } from '../../output/delivery-line.js'
import { jsonLines } from '../../output/json-lines.js'
import { localDay, localTime, shownTime, timeOfDay } from '../../output/time.js'
import { bold, cyan, dim, green, type Line, red, yellow } from '../../output/line.js'
import { ignoredText } from '../../../journal/types.js'

/** The lines that show an entry to a person: what it is and what became of it, then its headers and body. */
export function entryPage(
  entry: Entry,
  progress: readonly TargetProgress[],
  named: readonly NamedTarget[],
  isTerminal: boolean,
): Line[] {
  const names = shortNames([...named, ...progress])
  // The day of an attempt is shown only where it differs.
  const timeOf = (at: number): string =>
    isTerminal && localDay(at) === localDay(entry.receivedAt) ? timeOfDay(at) : localTime(at)
  return [
    bold(`#${entry.n}  ${eventName(entry)}  ${placeName(entry)}`.trimEnd()),
    '',
    ...properties(entry, isTerminal).map(([name, text]): Line => [dim(name.padEnd(12)), text]),
    ...progress.flatMap((target) => [
      '',
      ...targetLines(target, names.get(target.id) ?? target.label, timeOf),
    ]),
    ...(progress.length === 0 ? ['', dim(`forwarded to no target: ${reasonOf(entry)}`)] : []),
    '',
    dim('headers'),
    ...entry.headers.map(([name, value]): Line => ['  ', cyan(name), `: ${value}`]),
    '',
    ...bodyLines(entry),
  ]
}

function properties(entry: Entry, isTerminal: boolean): (readonly [string, string])[] {
  const { receivedAt, provider, deliveryId, hookId, verifiedBy, restored, duplicates } = entry
  const from = editedFrom(entry)
  return [
    ['received', shownTime(receivedAt, isTerminal)],
    ['from', `${provider}${hookId === '' ? '' : `, hook ${hookId}`}, delivery ${deliveryId}`],
    ['verified', `with the ${verifiedBy} webhook secret`],
    ...(restored ? [['restored', `${restored.how}, after a tunnel changed the body`] as const] : []),
    ...(restored?.unproved ? [['unproved', UNPROVED] as const] : []),
    ...(from === undefined
      ? []
      : [['edited', `a copy of #${from}, edited and sent in the inspector`] as const]),
    ['duplicates', String(duplicates)],
  ]
}

const UNPROVED = 'the event: its name is not signed, and the payload may also be of another'

function bodyLines(entry: Entry): Line[] {
  const { body, n } = entry
  const payload = readPayload(entry)
  const size = `${body.byteLength} byte${body.byteLength === 1 ? '' : 's'}`
  if (payload) {
    const kind = payload.form ? 'JSON in a form' : 'JSON'
    return [
      dim(`body (${size}): ${kind}`),
      ...jsonLines(layOut(payload.text)).map((line): Line => ['  ', line]),
    ]
  }
  const bytes = Buffer.from(body)
  return isUtf8(bytes)
    ? [dim(`body (${size})`), ...indented(bytes.toString())]
    : [dim(`body (${size}): not text; relay show ${n} --body prints it`)]
}

const STATES = { succeeded: green('✓ succeeded'), failed: red('✗ failed'), waiting: yellow('◦ waiting') }

function reasonOf({ ignoredBy }: Entry): string {
  return ignoredBy === undefined ? 'no route matched it when it came' : ignoredText(ignoredBy)
}

type TimeOf = (at: number) => string

function targetLines({ label, forward, attempts }: TargetProgress, name: string, timeOf: TimeOf): Line[] {
  const { status, reason } = forward
  return [
    [bold(name), '  ', STATES[status], reason === undefined ? '' : `: ${reason}`, dim(`  ${label}`)],
    ...attempts.flatMap((attempt) => attemptLines(attempt, timeOf)),
  ]
}

function attemptLines(attempt: Attempt, timeOf: TimeOf): Line[] {
  const { at, error, count, answer } = attempt
  const parts = [
    timeOf(at),
    describeAttempt(attempt),
    ...(error ? [error] : []),
    ...(count > 1 ? [`${count} times`] : []),
  ]
  return [`  ${parts.join('  ')}`, ...answerLines(answer).map((line) => dim(`    ${line}`))]
}

/** Enough to recognize an answer; `--json` prints all that was stored. */
const MAX_LINES = 10
const MAX_WIDTH = 200

function answerLines(answer: Uint8Array): string[] {
  const text = Buffer.from(answer).toString().trimEnd()
  if (text === '') return []
  const lines = text.split(/\r?\n/)
  const shown = lines
    .slice(0, MAX_LINES)
    .map((line) => (line.length > MAX_WIDTH ? `${line.slice(0, MAX_WIDTH)}…` : line))
  return lines.length > MAX_LINES ? [...shown, '…'] : shown
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`)
}
