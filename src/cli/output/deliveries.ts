import { isUtf8 } from 'node:buffer'
import {
  formatStatus,
  isCommand,
  labelOf,
  type NamedTarget,
  publicId,
  shortNames,
} from '../../dispatch/routes.js'
import { toFixture } from '../../replay/fixture.js'
import type { CaughtUp, Failed } from '../../codehost/catch-up.js'
import type { RegisteredHook } from '../../codehost/hooks.js'
import type { Journal } from '../../journal/journal.js'
import { readPayload } from '../../journal/payload.js'
import {
  type Attempt,
  type Delivery,
  editedFrom,
  type Entry,
  type Forward,
  ignoredText,
  shortRef,
  type Summary,
} from '../../journal/types.js'
import type { Shell } from '../command.js'
import { bold, dim, green, join, type Line, red, t, type Text, textOf, yellow } from './text.js'
import { localTime, spokenTime } from './time.js'

// How deliveries, attempts, targets and hooks are shown: for people as text, for programs as objects.

/** The fields of a delivery that a line shows. */
type DeliveryName = Pick<Delivery, 'event' | 'action' | 'repo' | 'number' | 'ref'>

/** `issue_comment.created` */
export function eventName({ event, action }: Pick<DeliveryName, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

/** `octo/demo#1`, `octo/demo  main`; empty where the payload names neither a repository nor a branch. */
export function placeName({ repo, number, ref }: DeliveryName): string {
  const subject = `${repo ?? ''}${number === null ? '' : `#${number}`}`
  return ref === undefined ? subject : `${subject}  ${shortRef(ref)}`.trim()
}

/** `38ms`, `1.2s` */
export function shortTime(ms: number): string {
  return ms < 1000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`
}

/** `202`, `exit 1`, `unreachable` */
export function attemptResult({ target, outcome, status }: Attempt): string {
  return status === null ? outcome : formatStatus(target, status)
}

/** The state of forwarding an entry to one target. */
export interface TargetProgress {
  /** The target's `publicId`. */
  readonly id: string
  /** The target without the password and query of an address. */
  readonly label: string
  readonly forward: Forward
  /** In order; repeated attempts with the same outcome are one, with a count. */
  readonly attempts: readonly Attempt[]
}

/** The state of forwarding an entry to each of its targets, in the order of the routes. @throws RelayError `storage` */
export async function progressOf(
  journal: Pick<Journal, 'attempts'>,
  { n, forwards }: Pick<Summary, 'n' | 'forwards'>,
): Promise<readonly TargetProgress[]> {
  const targets = Object.entries(forwards)
  const attempts = targets.length === 0 ? [] : await journal.attempts(n)
  return targets.map(([id, forward]) => ({
    id: publicId(id),
    label: labelOf(id),
    forward,
    attempts: attempts.filter(({ target }) => target === id),
  }))
}

// Objects

/** The fields of every object about a delivery. */
export function deliveryFields(delivery: Omit<Delivery, 'body'>): Record<string, unknown> {
  const { event, action, repo, number, ref, receivedAt, provider, deliveryId, verifiedBy, restored } =
    delivery
  return {
    time: new Date(receivedAt).toISOString(),
    provider,
    delivery: deliveryId,
    event,
    action,
    repo,
    number,
    ref: ref ?? null,
    verifiedBy,
    restored: restored?.how ?? null,
    unproved: restored?.unproved ?? false,
    editedFrom: editedFrom(delivery) ?? null,
  }
}

/** The fields of every object about an attempt. */
export function attemptFields(attempt: Attempt, label: string): Record<string, unknown> {
  const { at, outcome, status, ms, error } = attempt
  return { time: new Date(at).toISOString(), target: label, outcome, status, ms, error }
}

/** An entry for a program, without headers and body. */
export function summaryObject(
  summary: Omit<Summary, 'forwards'>,
  progress: readonly TargetProgress[],
): Record<string, unknown> {
  const { n, duplicates, size, ignoredBy = null } = summary
  const targets = progress.map(({ label, forward, attempts }) => {
    const { status: state, since, reason = null } = forward
    const { outcome = null, status = null, ms = null } = attempts.at(-1) ?? {}
    const count = attempts.reduce((sum, attempt) => sum + attempt.count, 0)
    const time = new Date(since).toISOString()
    return { target: label, state, reason, since: time, attempts: count, outcome, status, ms }
  })
  return { type: 'delivery', n, ...deliveryFields(summary), duplicates, size, ignoredBy, targets }
}

/** An entry for a program, with headers, body and attempts. */
export function entryObject(entry: Entry, progress: readonly TargetProgress[]): Record<string, unknown> {
  const { hookId, headers, body } = entry
  const { body: text, bodyBase64 } = toFixture(entry)
  return {
    ...summaryObject({ ...entry, size: body.byteLength }, progress),
    hook: hookId === '' ? null : hookId,
    headers: headers.map(([name, value]) => ({ name, value })),
    ...(text === undefined ? { bodyBase64 } : { body: text }),
    payload: readPayload(entry)?.value ?? null,
    attempts: progress
      .flatMap(({ label, attempts }) => attempts.map((attempt) => ({ label, attempt })))
      .toSorted((one, other) => one.attempt.at - other.attempt.at)
      .map(({ label, attempt }) => {
        const bytes = Buffer.from(attempt.answer)
        const content = isUtf8(bytes)
          ? { answer: bytes.toString() }
          : { answerBase64: bytes.toString('base64') }
        return { ...attemptFields(attempt, label), count: attempt.count, ...content }
      }),
  }
}

// Lines

/** What happened to a delivery at one target, for a line. */
interface Cell {
  readonly state: 'succeeded' | 'failed' | 'retry' | 'waiting'
  /** `202`, `exit 1`, `unreachable`; empty where the sign says it all. */
  readonly result: string
  /** `38ms`, `again in 2s`, `answered 500 five times`; empty for none. */
  readonly detail: string
}

/** The sign of each state: colour alone says nothing to some readers. */
const SIGNS = { succeeded: '✓', failed: '✗', retry: '↻', waiting: '◦' } as const
const COLORS = { succeeded: green, failed: red, retry: yellow, waiting: yellow } as const

/** `✓ 202 38ms`, `✗ exit 1 20ms`, `↻ 503 again in 2s`; `retryAt` is when the target asked for another attempt. */
export function attemptText(forward: Forward, attempt: Attempt | undefined, retryAt?: number): Text {
  return cellText(cellOf(forward, attempt, retryAt))
}

function cellOf({ status, reason }: Forward, attempt: Attempt | undefined, retryAt?: number): Cell {
  if (!attempt)
    return status === 'waiting'
      ? { state: status, result: 'waiting', detail: '' }
      : { state: status, result: reason ?? '', detail: '' }
  const result = attemptResult(attempt)
  const time = shortTime(attempt.ms)
  if (status === 'succeeded')
    return { state: status, result: isCommand(attempt.target) ? '' : result, detail: time }
  if (status === 'failed') return { state: status, result, detail: failure(attempt, reason, time) }
  if (retryAt !== undefined) {
    const seconds = Math.max(1, Math.round((retryAt - attempt.at - attempt.ms) / 1000))
    return { state: 'retry', result, detail: `again in ${seconds}s` }
  }
  if (attempt.outcome === 'retry') return { state: 'retry', result, detail: 'waiting' }
  return { state: 'waiting', result: attempt.outcome === 'unreachable' ? 'down' : result, detail: '' }
}

/** The time, and what the status does not say about a failure. */
function failure({ status, error }: Attempt, reason = error ?? '', time: string): string {
  const known = [`answered ${status}`, `exit code ${status}`].find((start) => reason.startsWith(start))
  const more = known === undefined ? reason : reason.slice(known.length).replace(/^, /, '')
  return more === '' ? time : `${time}, ${more}`
}

function cellText({ state, result, detail }: Cell): Text {
  const parts = [COLORS[state](SIGNS[state]), COLORS[state](result), dim(detail)]
  return join(
    parts.filter(({ width }) => width > 0),
    ' ',
  )
}

/** Prints entries, one per line. */
export interface Printer {
  /** Widens the columns for an entry that is printed later. */
  fit(summary: Summary): void
  /** Prints the names of the columns, for a person. */
  header(): void
  /** @throws RelayError `storage` */
  print(summary: Summary): Promise<void>
}

/**
 * As objects; for a person, in columns as wide as the terminal allows, with the targets' short names; else in columns with
 * everything in full.
 */
export function createPrinter(
  { out, json }: Shell,
  journal: Journal,
  named: readonly NamedTarget[] = [],
): Printer {
  if (json)
    return {
      fit() {},
      header() {},
      print: async (summary) => out.object(summaryObject(summary, await progressOf(journal, summary))),
    }
  const columns = out.isTerminal ? new Rows(named) : new Records()
  return {
    fit: (summary) => columns.fit(summary),
    header() {
      const header = columns.header(out.width)
      if (header) out.result(header)
    },
    async print(summary) {
      columns.fit(summary)
      out.result(columns.line(summary, await progressOf(journal, summary), out.width))
    },
  }
}

const GAP = '  '

/** For programs that read text: `#7  2026-01-31 12:04:11  push  octo/demo  → http://localhost:3000 202 38ms`; `-` for an empty column. */
class Records {
  readonly #widths = [0, 0, 0, 0]

  fit(summary: Summary): void {
    for (const [i, cell] of this.#cells(summary).entries())
      this.#widths[i] = Math.max(this.#widths[i] ?? 0, cell.width)
  }

  header(): undefined {}

  line(summary: Summary, progress: readonly TargetProgress[]): Text {
    const cells = this.#cells(summary).map((cell, i) => cell.pad(this.#widths[i] ?? 0))
    const note = noteOf(summary)
    return join([...cells, progressText(progress, summary), ...(note === '' ? [] : [yellow(note)])], GAP)
  }

  #cells(summary: Summary): Text[] {
    const { n, receivedAt } = summary
    return [
      textOf(`#${n}`),
      dim(localTime(receivedAt)),
      bold(eventName(summary)),
      textOf(placeName(summary) || '-'),
    ]
  }
}

/** `edited copy of #3, 1 duplicate`; empty for a usual entry. */
function noteOf(summary: Pick<Summary, 'duplicates' | 'headers'>): string {
  const from = editedFrom(summary)
  const { duplicates: count } = summary
  return [
    ...(from === undefined ? [] : [`edited copy of #${from}`]),
    ...(count === 0 ? [] : [`${count} duplicate${count === 1 ? '' : 's'}`]),
  ].join(', ')
}

/** Shows the last answer of a single target, and counts of several. */
function progressText(progress: readonly TargetProgress[], { ignoredBy }: Summary): Line {
  const [only] = progress
  if (!only) return ignoredBy === undefined ? '-' : ignoredText(ignoredBy)
  if (progress.length === 1) {
    const { label, forward, attempts } = only
    const last = attempts.at(-1)
    const text = `→ ${label}${last ? ` ${attemptResult(last)} ${shortTime(last.ms)}` : ''}`
    if (forward.status === 'succeeded') return text
    return t`${text} ${forward.status === 'failed' ? red('failed') : yellow('waiting')}`
  }
  const of = (state: string): number => progress.filter(({ forward }) => forward.status === state).length
  const [failed, waiting, total] = [of('failed'), of('waiting'), progress.length]
  if (failed + waiting === 0) return `→ ${total} targets`
  return join(
    [
      ...(failed > 0 ? [red(`${failed} of ${total} failed`)] : []),
      ...(waiting > 0 ? [yellow(`${waiting} of ${total} waiting`)] : []),
    ],
    ', ',
  )
}

/** The columns of a terminal below which the event, the place and the targets do not all fit. */
const MIN_WIDTH = 40
/** The columns of an event that are enough to know it. */
const MIN_EVENT = 5
const UNROUTED = 'no route'

/** For a person: `12:04:11  #7  push  octo/demo  main  app ✓ 202 38ms`, in columns as wide as the widest row so far, as far as they fit. */
class Rows {
  readonly #now = Date.now()
  readonly #named: readonly NamedTarget[]
  readonly #widths = { time: 0, n: 0, event: 0, place: 0, targets: 'targets'.length }

  constructor(named: readonly NamedTarget[]) {
    this.#named = named
  }

  fit(summary: Summary): void {
    const progress = Object.entries(summary.forwards).map(([id, forward]) => ({
      id: publicId(id),
      label: '',
      forward,
      attempts: [],
    }))
    const texts = {
      time: this.#time(summary),
      n: textOf(`#${summary.n}`),
      event: textOf(eventName(summary)),
      place: textOf(placeName(summary)),
      targets: this.#isUnrouted(summary) ? textOf(UNROUTED) : (this.#targets(progress).at(-1) ?? textOf('')),
    }
    for (const name of ['time', 'n', 'event', 'place', 'targets'] as const)
      this.#widths[name] = Math.max(this.#widths[name], texts[name].width)
  }

  header(width: number): Text {
    const names = { time: dim('time'), n: dim('#'), event: dim('event'), place: dim('repository') }
    return this.#row(names, () => dim('targets'), width)
  }

  line(summary: Summary, progress: readonly TargetProgress[], width: number): Text {
    const { event } = this.#share(width)
    const cells = {
      time: dim(this.#time(summary)),
      n: textOf(`#${summary.n}`),
      event: bold(cutEvent(summary, event)),
      place: textOf(placeName(summary)),
    }
    const note = this.#notes(summary, progress)
    const forms = this.#targets(progress)
    const end = (room: number): Text => {
      if (progress.length === 0) return yellow(note)
      const shortest = forms.at(-1) ?? textOf('')
      const fitting = (columns: number): Text => forms.find((form) => form.width <= columns) ?? shortest
      const rest = room - note.length - GAP.length
      return note === '' || shortest.width > rest ? fitting(room) : join([fitting(rest), yellow(note)], GAP)
    }
    return this.#row(cells, end, width)
  }

  #row(
    { time, n, event, place }: Readonly<Record<'time' | 'n' | 'event' | 'place', Text>>,
    end: (room: number) => Text,
    width: number,
  ): Text {
    const widths = { ...this.#widths, ...this.#share(width) }
    const start = [time.pad(widths.time), n.pad(widths.n), event.pad(widths.event)]
    const last = place.cutStart(widths.place)
    const room = width - widths.time - widths.n - widths.event - widths.place - 4 * GAP.length
    const targets = end(room)
    const cells = targets.width === 0 ? [...start, last] : [...start, last.pad(widths.place), targets]
    return join(cells, GAP).cut(width)
  }

  /**
   * The columns of event and place. Both are as wide as their texts if the targets then still have room for their names and
   * signs; otherwise the targets get that, up to half of the line, and both are cut.
   */
  #share(columns: number): { readonly event: number; readonly place: number } {
    const { time, n, event, place, targets } = this.#widths
    const room = Math.max(columns, MIN_WIDTH) - time - n - 4 * GAP.length
    const both = room - Math.min(targets, Math.floor(room / 2))
    if (event + place <= both) return { event, place }
    // The narrower one is cut only below half of the room.
    const half = Math.floor(both / 2)
    if (place <= half) return { event: both - place, place }
    if (event <= both - half) return { event, place: both - event }
    return { event: both - half, place: half }
  }

  #time({ receivedAt }: Summary): Text {
    return textOf(spokenTime(receivedAt, this.#now))
  }

  /** The targets in forms that get shorter: `app ✓ 202 38ms`, `app ✓ 202`, `app ✓`; what is no success stays longest. */
  #targets(progress: readonly TargetProgress[]): readonly Text[] {
    const names = shortNames([...this.#named, ...progress])
    const cells = progress.map(({ id, forward, attempts }) => ({
      name: names.get(id) ?? id,
      ...cellOf(forward, attempts.at(-1)),
    }))
    type Named = (typeof cells)[number]
    const text = (cell: Named): Text => t`${cell.name} ${cellText(cell)}`
    const brief = (cell: Named): Named => ({ ...cell, detail: '' })
    // `:3000` for an address on this machine.
    const near = (cell: Named): Named => ({
      ...brief(cell),
      name: cell.name.replace(/^(?:localhost|127\.0\.0\.1|\[::1\])(?=:\d)/, ''),
    })
    const notable = (cell: Named): Named => ({
      ...near(cell),
      result: cell.state === 'failed' || cell.state === 'retry' ? cell.result : '',
    })
    const forms = [(cell: Named) => cell, brief, near, notable]
    return forms.map((form) =>
      join(
        cells.map((cell) => text(form(cell))),
        GAP,
      ),
    )
  }

  #isUnrouted({ forwards, ignoredBy }: Summary): boolean {
    return Object.keys(forwards).length === 0 && ignoredBy === undefined && this.#named.length > 0
  }

  /** Why an entry has no targets, where there are routes at all, and what else is unusual about it. */
  #notes(summary: Summary, progress: readonly unknown[]): string {
    const { ignoredBy } = summary
    return [
      ...(progress.length === 0 && ignoredBy !== undefined ? [ignoredText(ignoredBy)] : []),
      ...(this.#isUnrouted(summary) ? [UNROUTED] : []),
      ...[noteOf(summary)].filter((note) => note !== ''),
    ].join(', ')
  }
}

/** `pull_requ….opened`: the action says more than the end of the event, as long as enough of the event is left to know it. */
function cutEvent(delivery: DeliveryName, width: number): Text {
  const whole = textOf(eventName(delivery))
  if (whole.width <= width || delivery.action === null) return whole.cut(width)
  const action = textOf(`.${delivery.action}`)
  const room = width - action.width
  return room < MIN_EVENT ? whole.cut(width) : t`${textOf(delivery.event).cut(room)}${action}`
}

// Hooks and catching up

/** `hook of octo/demo created: https://smee.io/…` */
export function hookStateText(repo: string, { hook, created, repaired, found }: RegisteredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  const others = found
    ? ' (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)'
    : ''
  return `hook of ${repo} ${what}: ${hook.url}${others}`
}

/** `webhook of the App relay-1a2b3c4d leads here: https://smee.io/…` */
export function appHookText(
  app: string,
  { url, repaired }: { readonly url: string; readonly repaired: readonly string[] },
): string {
  const what = repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'leads here'
  return `webhook of ${app} ${what}: ${url}`
}

/** `caught up with octo/demo: 40 missing, 38 arrived, 2 could not be had (…)`. The first reason stands for all. */
export function caughtUpText(repo: string, { missing, arrived, failed }: CaughtUp): string {
  if (missing === 0) return `caught up with ${repo}: nothing was missing`
  const [first] = failed
  const rest = first ? `, ${failed.length} could not be had (${failedText(first)})` : ''
  return `caught up with ${repo}: ${missing} missing, ${arrived} arrived${rest}`
}

/** What to do about deliveries that could not be had. */
export const ASK_AGAIN = 'relay doctor checks the hook; relay catch-up asks again'

/** `issues.opened of 2026-01-31 12:00:00: it did not arrive within 30 s` */
export function failedText({ delivery, why }: Failed): string {
  return `${eventName(delivery)} of ${localTime(delivery.deliveredAt)}: ${why}`
}

export function failedObject({ delivery, why }: Failed): Record<string, unknown> {
  return { ...missedObject(delivery), why }
}

/** A delivery of the code host's log, for a program. */
export function missedObject({ id, guid, event, action, deliveredAt }: Failed['delivery']) {
  return { id, guid, event, action, deliveredAt: new Date(deliveredAt).toISOString() }
}
