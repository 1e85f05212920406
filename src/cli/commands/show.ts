import { isUtf8 } from 'node:buffer'
import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason, RelayError } from '../../base/errors.js'
import { isCodeHost } from '../../base/settings.js'
import { shortNames } from '../../dispatch/routes.js'
import { fixtureText, hasSignature, toFixture } from '../../replay/fixture.js'
import { redact } from '../../replay/redact.js'
import { type Attempt, editedFrom, type Entry, ignoredText } from '../../journal/types.js'
import type { Flags, Shell } from '../command.js'
import { findEntry, namedTargets, openJournal } from '../journal.js'
import {
  attemptResult,
  entryObject,
  placeName,
  progressOf,
  readableBody,
  shortTime,
  sourcedName,
  STATES,
  type TargetProgress,
} from '../output/deliveries.js'
import { bold, cyan, dim, type Line, t, textOf, yellow } from '../output/text.js'
import { localDay, localTime, shownTime, timeOfDay } from '../output/time.js'
import { type Attached, attach, commandFor } from '../profile.js'
import { isRefused, refusedId, showRefused } from '../refused.js'

export async function runShow(
  shell: Shell,
  flags: Flags & { readonly body?: boolean },
  word: string,
): Promise<void> {
  const { out } = shell
  if (flags.body && shell.json)
    throw new RelayError('usage', '--body: prints exact bytes, so it cannot be combined with --json')
  const attached = await attach(shell, flags, isRefused(word) ? 'answering' : 'existing')
  const id = refusedId(word, attached)
  if (id !== undefined) return showRefused(shell, attached, id, flags.body === true)
  // The journal is closed before a pager waits for its reader.
  const { entry, progress } = await readEntry(attached, word)
  if (flags.body) return out.exactly(entry.body)
  if (shell.json) return out.object(entryObject(entry, progress))
  await out.pages(entryPage(entry, progress, attached, out.isTerminal))
}

async function readEntry(attached: Attached, word: string) {
  await using journal = await openJournal(attached)
  const entry = await findEntry(journal, word)
  const [summary] = await journal.summaries([entry.n])
  return { entry, progress: summary ? await progressOf(journal, summary) : [] }
}

/** The lines that show an entry to a person: what it is and what became of it, then its headers and body. */
function entryPage(
  entry: Entry,
  progress: readonly TargetProgress[],
  attached: Attached,
  isTerminal: boolean,
): Line[] {
  const names = shortNames([...namedTargets(attached), ...progress])
  // The day of an attempt is shown only where it differs.
  const timeOf = (at: number): string =>
    isTerminal && localDay(at) === localDay(entry.receivedAt) ? timeOfDay(at) : localTime(at)
  const nowhere =
    entry.ignoredBy === undefined ? 'no route matched it when it came' : ignoredText(entry.ignoredBy)
  return [
    bold(`#${entry.n}  ${sourcedName(entry)}  ${placeName(entry)}`.trimEnd()),
    '',
    ...[...properties(entry, isTerminal)].map(([name, text]) => t`${dim(name.padEnd(12))}${text}`),
    ...progress.flatMap((target) => [
      '',
      ...targetLines(target, names.get(target.id) ?? target.label, timeOf),
    ]),
    ...(progress.length === 0 ? ['', dim(`forwarded to no target: ${nowhere}`)] : []),
    '',
    dim('headers'),
    ...entry.headers.map(([name, value]) => t`  ${cyan(name)}: ${value}`),
    '',
    ...bodyLines(entry, attached),
  ]
}

function* properties(entry: Entry, isTerminal: boolean): Generator<readonly [name: string, text: Line]> {
  const { receivedAt, provider, deliveryId, hookId, verifiedBy, restored, duplicates } = entry
  const from = editedFrom(entry)
  const name = entry.scheme === undefined ? provider : `${provider} (${entry.scheme})`
  const secret = isCodeHost(provider) ? `${verifiedBy} webhook secret` : `${verifiedBy} secret of ${provider}`
  yield ['received', shownTime(receivedAt, isTerminal)]
  yield ['from', `${name}${hookId === '' ? '' : `, hook ${hookId}`}, delivery ${deliveryId}`]
  yield ['verified', verifiedBy === 'none' ? yellow('not: its source proves nothing') : `with the ${secret}`]
  if (restored) yield ['restored', `${restored.how}, after a tunnel changed the body`]
  if (restored?.unproved)
    yield ['unproved', 'the event: its name is not signed, and the payload may also be of another']
  if (from !== undefined) yield ['edited', `a copy of #${from}, edited and sent in the inspector`]
  yield ['duplicates', String(duplicates)]
}

function targetLines(
  { label, forward: { status, reason }, attempts }: TargetProgress,
  name: string,
  timeOf: (at: number) => string,
): Line[] {
  const { sign, color } = STATES[status]
  const why = reason === undefined ? '' : `: ${reason}`
  const lines = attempts.flatMap((attempt) => {
    const { at, ms, error, count } = attempt
    const parts = [timeOf(at), `${attemptResult(attempt)} ${shortTime(ms)}`, ...(error ? [error] : [])]
    const shown = `  ${[...parts, ...(count > 1 ? [`${count} times`] : [])].join('  ')}`
    return [shown, ...answerLines(attempt).map((line) => dim(`    ${line}`))]
  })
  return [t`${bold(name)}  ${color(`${sign} ${status}`)}${why}${dim(`  ${label}`)}`, ...lines]
}

/** Enough to recognize an answer; `--json` prints all that was stored. */
const MAX_LINES = 10
const MAX_WIDTH = 201

function answerLines({ answer, headers = [] }: Attempt): string[] {
  const [, encoding] = headers.find(([name]) => name === 'content-encoding') ?? []
  if (encoding !== undefined && !isText(answer)) return [`(compressed: ${String(textOf(encoding))})`]
  const text = Buffer.from(answer).toString().trimEnd()
  if (text === '') return []
  const lines = text.split(/\r?\n/).map((line) => String(textOf(line).cut(MAX_WIDTH)))
  return lines.length > MAX_LINES ? [...lines.slice(0, MAX_LINES), '…'] : lines
}

/** Whether the start of a text may be text: its last character may be cut off. */
function isText(start: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true }) !== undefined
  } catch {
    return false
  }
}

function bodyLines(entry: Entry, attached: Attached): readonly Line[] {
  const { body, n } = entry
  const size = `body (${body.byteLength} byte${body.byteLength === 1 ? '' : 's'})`
  const { kind, lines } = readableBody(entry)
  if (kind !== 'text') return [dim(`${size}: ${kind}`), ...lines]
  if (isUtf8(body)) return [dim(size), ...lines]
  return [dim(`${size}: not text; ${commandFor(attached, `show ${n} --body`)} prints it`)]
}

interface ExportFlags extends Flags {
  readonly out?: string
  readonly force?: boolean
  readonly pretty?: boolean
  readonly redact?: boolean
}

export async function runExport(shell: Shell, flags: ExportFlags, word: string): Promise<void> {
  const { out, cwd } = shell
  await using journal = await openJournal(await attach(shell, flags))
  const entry = await findEntry(journal, word)
  const { n } = entry
  const content = toFixture(flags.redact ? await redact(entry, shell.signal) : entry, flags)
  if (hasSignature(content))
    out.say(
      `#${n} is written with its real signature, which proves its payload to whoever has the secret. --redact leaves it out`,
    )
  if (flags.pretty && content.payload === undefined)
    out.say(`#${n} has its exact body: writing its JSON again would change bytes, and its signature`)
  const fixture = fixtureText(content)
  // The same under --json: a fixture is JSON, and its version is `"relay":1`.
  if (flags.out === undefined || flags.out === '-') return out.exactly(fixture)
  const file = path.resolve(cwd, flags.out)
  try {
    await writeFile(file, fixture, { flag: flags.force ? 'w' : 'wx' })
  } catch (cause) {
    const code = errorReason(cause)
    const isFolder =
      code === 'EISDIR' || (code === 'EEXIST' && statSync(file, { throwIfNoEntry: false })?.isDirectory())
    const exists = code === 'EEXIST' ? 'exists. Overwrite it with --force' : `cannot be written (${code})`
    const why = isFolder ? 'is a folder' : exists
    throw new RelayError('usage', `--out: ${flags.out} ${why}`, { cause })
  }
  if (shell.json) out.object({ n, file: flags.out })
  else out.say(`#${n} is in ${flags.out}`)
}
