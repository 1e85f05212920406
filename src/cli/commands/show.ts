import { isUtf8 } from 'node:buffer'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason, RelayError } from '../../base/errors.js'
import { type NamedTarget, shortNames } from '../../dispatch/routes.js'
import { fixtureText, toFixture } from '../../replay/fixture.js'
import { readPayload } from '../../journal/payload.js'
import { type Attempt, editedFrom, type Entry, ignoredText } from '../../journal/types.js'
import { layOut } from '../../json/text.js'
import type { Flags, Shell } from '../command.js'
import { findEntry, namedTargets, openJournal } from '../journal.js'
import {
  attemptResult,
  entryObject,
  eventName,
  placeName,
  progressOf,
  shortTime,
  type TargetProgress,
} from '../output/deliveries.js'
import { bold, cyan, dim, green, jsonLines, type Line, red, t, yellow } from '../output/text.js'
import { localDay, localTime, shownTime, timeOfDay } from '../output/time.js'
import { type Attached, attach } from '../profile.js'
import { readRefused, refusedEntryObject, refusedId, refusedPage } from '../refused.js'

/** Runs `relay show`. */
export async function runShow(
  shell: Shell,
  flags: Flags & { readonly body?: boolean },
  word: string,
): Promise<void> {
  const { out } = shell
  const attached = await attach(shell, flags)
  const id = refusedId(word)
  if (id !== undefined) return showRefused(shell, attached, id, flags.body === true)
  // The journal is closed before a pager waits for its reader.
  const { entry, progress } = await readEntry(attached, word)
  if (flags.body) return out.exactly(entry.body)
  if (shell.json) return out.object(entryObject(entry, progress))
  await out.pages(entryPage(entry, progress, namedTargets(attached), out.isTerminal))
}

async function readEntry(
  attached: Attached,
  word: string,
): Promise<{ readonly entry: Entry; readonly progress: readonly TargetProgress[] }> {
  await using reader = await openJournal(attached)
  const { journal } = reader
  const entry = await findEntry(journal, word)
  const [summary] = await journal.summaries([entry.n])
  return { entry, progress: summary ? await progressOf(journal, summary) : [] }
}

async function showRefused(shell: Shell, attached: Attached, id: number, isBody: boolean): Promise<void> {
  const { out } = shell
  const entry = await readRefused(shell, attached, id)
  if (isBody) {
    const body = Buffer.from(entry.body, 'base64')
    if (body.length < entry.size)
      throw new RelayError('no_match', `Only ${body.length} of its ${entry.size} bytes were stored`)
    return out.exactly(body)
  }
  if (shell.json) return out.object(refusedEntryObject(entry))
  await out.pages(refusedPage(entry, out.isTerminal))
}

/** The lines that show an entry to a person: what it is and what became of it, then its headers and body. */
function entryPage(
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
    ...properties(entry, isTerminal).map(([name, text]) => t`${dim(name.padEnd(12))}${text}`),
    ...progress.flatMap((target) => [
      '',
      ...targetLines(target, names.get(target.id) ?? target.label, timeOf),
    ]),
    ...(progress.length === 0 ? ['', dim(`forwarded to no target: ${whyNowhere(entry)}`)] : []),
    '',
    dim('headers'),
    ...entry.headers.map(([name, value]) => t`  ${cyan(name)}: ${value}`),
    '',
    ...bodyLines(entry),
  ]
}

function properties(entry: Entry, isTerminal: boolean): (readonly [name: string, text: string])[] {
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

function whyNowhere({ ignoredBy }: Entry): string {
  return ignoredBy === undefined ? 'no route matched it when it came' : ignoredText(ignoredBy)
}

const STATES = { succeeded: green('✓ succeeded'), failed: red('✗ failed'), waiting: yellow('◦ waiting') }

function targetLines(
  { label, forward, attempts }: TargetProgress,
  name: string,
  timeOf: (at: number) => string,
): Line[] {
  const { status, reason } = forward
  return [
    t`${bold(name)}  ${STATES[status]}${reason === undefined ? '' : `: ${reason}`}${dim(`  ${label}`)}`,
    ...attempts.flatMap((attempt) => attemptLines(attempt, timeOf)),
  ]
}

function attemptLines(attempt: Attempt, timeOf: (at: number) => string): Line[] {
  const { at, error, count, answer } = attempt
  const parts = [
    timeOf(at),
    `${attemptResult(attempt)} ${shortTime(attempt.ms)}`,
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

function bodyLines(entry: Entry): Line[] {
  const { body, n } = entry
  const payload = readPayload(entry)
  const size = `${body.byteLength} byte${body.byteLength === 1 ? '' : 's'}`
  if (payload) {
    const kind = payload.form ? 'JSON in a form' : 'JSON'
    return [dim(`body (${size}): ${kind}`), ...jsonLines(layOut(payload.text), '  ')]
  }
  const bytes = Buffer.from(body)
  if (!isUtf8(bytes)) return [dim(`body (${size}): not text; relay show ${n} --body prints it`)]
  const lines = bytes.toString().split('\n')
  return [dim(`body (${size})`), ...lines.map((line) => `  ${line}`)]
}

type ExportFlags = Flags & { readonly out?: string; readonly force?: boolean; readonly pretty?: boolean }

/** Runs `relay export`. */
export async function runExport(shell: Shell, flags: ExportFlags, word: string): Promise<void> {
  const { out, cwd } = shell
  await using reader = await openJournal(await attach(shell, flags))
  const entry = await findEntry(reader.journal, word)
  const { n } = entry
  const content = toFixture(entry, flags)
  if (flags.pretty && content.payload === undefined)
    out.say(`#${n} has its exact body: writing its JSON again would change bytes, and its signature`)
  const fixture = fixtureText(content)
  // The same under --json: a fixture is JSON, and its version is `"relay":1`.
  if (flags.out === undefined || flags.out === '-') return out.exactly(fixture)
  try {
    await writeFile(path.resolve(cwd, flags.out), fixture, { flag: flags.force ? 'w' : 'wx' })
  } catch (cause) {
    const code = errorReason(cause)
    const why = code === 'EEXIST' ? 'exists. Overwrite it with --force' : `cannot be written (${code})`
    throw new RelayError('usage', `--out: ${flags.out} ${why}`, { cause })
  }
  if (shell.json) out.object({ n, file: flags.out })
  else out.say(`#${n} is in ${flags.out}`)
}
