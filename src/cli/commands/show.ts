import { isUtf8 } from 'node:buffer'
import { secretWords } from '../../base/source-names.js'
import { RelayError } from '../../base/errors.js'
import { shortNames } from '../../dispatch/routes.js'
import { type Attempt, editedFrom, type Entry, ignoredText } from '../../journal/types.js'
import { STORED } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { findEntry, knownTargets } from '../journal.js'
import { entryObject, readableBody, withShownBody } from '../output/delivery.js'
import {
  attemptResult,
  placeName,
  progressOf,
  withReasons,
  shortTime,
  sourcedName,
  STATES,
  type TargetProgress,
} from '../output/deliveries.js'
import type { Output } from '../output/output.js'
import { bold, cyan, dim, type Line, t, textOf, yellow } from '../output/text.js'
import { localDay, localTime, shownTime, timeOfDay } from '../output/time.js'
import { openProfile, type Profile } from '../profile.js'
import { openedObject, type OpenedRefused, openRefused, refusedPage, wholeBody } from '../refused-request.js'
import { isRefused, refusedId } from '../refused.js'

export const showCommand = define({
  ...STORED,
  description: `Shows one delivery: its headers in order, its body, and every attempt to forward it with the start of the target's
answer. For refused:3, shows the third request that the running instance refused, and why.`,
  examples: `relay show last
relay show 7 --body > body.json  the exact bytes
relay show 7 --json | jq .payload.action
relay show refused:3`,
  args: [['<entry>', 'number of the entry, or last, or refused:<number>']],
  options: [
    ['--body', 'print only the exact bytes of the body; escaped on a terminal'],
    ['--reveal', 'print secrets in the body, too'],
  ],
  run: runShow,
  print,
  json,
})

type ShowInput = Flags & { readonly entry: string; readonly body?: boolean; readonly reveal?: boolean }

type Shown =
  | { readonly type: 'body'; readonly body: Uint8Array }
  | ({ readonly type: 'refused' } & OpenedRefused)
  | ({ readonly type: 'entry'; readonly profile: Profile } & ShownEntry)

type ShownEntry = Awaited<ReturnType<typeof readEntry>>

async function runShow(shell: Shell, flags: ShowInput): Promise<Shown> {
  const { entry: word } = flags
  if (flags.body && shell.json)
    throw new RelayError('usage', '--body: prints exact bytes, so it cannot be combined with --json')
  await using profile = await openProfile(shell, flags, { problems: isRefused(word) ? 'fail' : 'warn' })
  const id = refusedId(word, profile)
  if (id !== undefined) {
    const refused = await openRefused(shell, profile, id)
    if (flags.body) return { type: 'body', body: wholeBody(refused) }
    const body = flags.reveal ? refused.body : await shownBody(profile, refused)
    return { type: 'refused', ...refused, body: Buffer.from(body) }
  }
  // The journal is closed before a pager waits for its reader.
  const found = await readEntry(profile, word)
  if (flags.body) return { type: 'body', body: found.entry.body }
  const entry = flags.reveal ? found.entry : await withShownBody(found.entry)
  return { type: 'entry', profile, ...found, entry }
}

/** The body of a refused request without the secrets that its source has there. */
async function shownBody(profile: Profile, { entry: { source }, body }: OpenedRefused): Promise<Uint8Array> {
  const [{ listSources }, { isScheme, senderOf }] = await Promise.all([
    import('../sources.js'),
    import('../../senders/senders.js'),
  ])
  const { all } = await listSources(profile, await profile.data())
  const { scheme = source } = all.find(({ name }) => name === source) ?? {}
  return isScheme(scheme) ? senderOf(scheme).hideSecrets(body, 'show') : body
}

async function print(shown: Shown, out: Output): Promise<void> {
  if (shown.type === 'body') out.exactly(shown.body)
  else if (shown.type === 'refused') await out.pages(refusedPage(shown, out.isTerminal))
  else await out.pages(entryPage(shown, shown.profile, out.isTerminal))
}

function json(shown: Shown) {
  if (shown.type === 'body') return shown.body
  return shown.type === 'refused' ? openedObject(shown) : entryObject(shown.entry, shown.progress)
}

async function readEntry(profile: Profile, word: string) {
  const journal = await profile.journal()
  const entry = await findEntry(journal, word)
  const [summary] = await journal.summaries([entry.n])
  const progress = summary ? await progressOf(journal, summary) : []
  const named = await knownTargets(profile, journal)
  return { entry, named, progress: withReasons(entry.n, progress, profile.instance) }
}

/** Formats an entry for a person: its delivery and targets, then its headers and body. */
function entryPage({ entry, named, progress }: ShownEntry, profile: Profile, isTerminal: boolean): Line[] {
  const names = shortNames([...named, ...progress])
  // The day of an attempt is shown only if it differs.
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
    ...bodyLines(entry, profile),
  ]
}

function* properties(entry: Entry, isTerminal: boolean): Generator<readonly [name: string, text: Line]> {
  const { receivedAt, provider, deliveryId, hookId, query, verifiedBy, restored, duplicates } = entry
  const from = editedFrom(entry)
  const name = entry.scheme === undefined ? provider : `${provider} (${entry.scheme})`
  const secret = secretWords(provider, verifiedBy)
  yield ['received', shownTime(receivedAt, isTerminal)]
  yield ['from', `${name}${hookId === '' ? '' : `, hook ${hookId}`}, delivery ${deliveryId}`]
  if (query !== undefined) yield ['query', query]
  yield ['verified', verifiedBy === 'none' ? yellow('not: its source proves nothing') : `with the ${secret}`]
  if (restored) yield ['restored', `${restored.how}, after a tunnel changed the body`]
  if (restored?.unproved)
    yield ['unproved', 'the event: its name is not signed, and the payload may also be of another']
  if (from !== undefined) yield ['edited', `a copy of #${from}, edited and sent in the inspector`]
  yield ['duplicates', String(duplicates)]
}

function targetLines(
  { label, forward: { status, reason }, attempts, waitsFor }: TargetProgress,
  name: string,
  timeOf: (at: number) => string,
): Line[] {
  const { sign, color } = STATES[status]
  const shownReason = reason ?? waitsFor
  const why = shownReason === undefined ? '' : `: ${shownReason}`
  const lines = attempts.flatMap((attempt) => {
    const { at, ms, error, count } = attempt
    const parts = [timeOf(at), `${attemptResult(attempt)} ${shortTime(ms)}`, ...(error ? [error] : [])]
    const shown = `  ${[...parts, ...(count > 1 ? [`${count} times`] : [])].join('  ')}`
    return [shown, ...answerLines(attempt).map((line) => dim(`    ${line}`))]
  })
  return [t`${bold(name)}  ${color(`${sign} ${status}`)}${why}${dim(`  ${label}`)}`, ...lines]
}

/** Lines of a response that are shown, enough to recognize it. `--json` prints everything that was stored. */
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

/** True if the start of a body can be text. Its last character may be cut off. */
function isText(start: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true }) !== undefined
  } catch {
    return false
  }
}

function bodyLines(entry: Entry, profile: Profile): readonly Line[] {
  const { body, n } = entry
  const size = `body (${body.byteLength} byte${body.byteLength === 1 ? '' : 's'})`
  const { kind, lines } = readableBody(entry)
  const name = kind === undefined ? '' : `: ${kind}`
  if (isUtf8(body)) return [dim(size + name), ...lines]
  return [dim(`${size}${name}; ${profile.command(`show ${n} --body`)} prints it`)]
}
