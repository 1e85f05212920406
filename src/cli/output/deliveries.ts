import { shownSource } from '../../base/source-names.js'
import {
  formatStatus,
  isCommand,
  labelOf,
  type NamedTarget,
  publicTargetId,
  shortNames,
} from '../../dispatch/routes.js'
import { isSentAgain } from '../../dispatch/target.js'
import { waitReason, waitText } from '../../dispatch/waiting.js'
import type { InstanceStatus } from '../../instance/protocol.js'
import type { CatchUpResult, FailedDelivery } from '../../codehost/catch-up.js'
import type { RegisteredHook } from '../../codehost/hooks.js'
import type { HookPause } from '../../codehost/host.js'
import type { Journal } from '../../journal/journal.js'
import {
  type Attempt,
  type Delivery,
  editedFrom,
  type Forward,
  ignoredText,
  numberText,
  shortRef,
  type Summary,
} from '../../journal/types.js'
import { marked, outside, own, timeField } from './outside.js'
import type { Output } from './output.js'
import { bold, dim, green, joined, red, t, type Text, textOf, yellow } from './text.js'
import { localTime, spokenTime } from './time.js'

// Formats of deliveries, attempts, targets and hooks: text for people, objects for programs.

type DeliveryName = Pick<
  Delivery,
  'event' | 'action' | 'repo' | 'number' | 'kind' | 'ref' | 'provider' | 'deliveryId'
>

/** Formats `issue_comment.created`. */
export function eventName({ event, action }: Pick<DeliveryName, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

/** Formats `issue_comment.created`, or `stripe  invoice.paid` for another source than the code host. */
export function sourcedName(delivery: Pick<DeliveryName, 'event' | 'action' | 'provider'>): string {
  const { provider } = delivery
  return [shownSource(provider) ?? [], eventName(delivery)].flat().join('  ')
}

/**
 * Formats `octo/demo#1`, `octo/demo main`, `group/demo!2`. If the payload names neither a repository nor a branch, it is empty or, for
 * another source than the code host, the delivery's id.
 */
export function placeName(delivery: DeliveryName): string {
  const { repo, ref, provider, deliveryId } = delivery
  const subject = `${repo ?? ''}${numberText(delivery)}`
  const place = ref === undefined ? subject : `${subject}  ${shortRef(ref)}`.trim()
  return place === '' && shownSource(provider) !== undefined ? deliveryId : place
}

export const UNVERIFIED = 'unverified'

/** Formats `38ms`, `1.2s`. */
export function shortTime(ms: number): string {
  return ms < 1000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`
}

/** Formats `202`, `exit 1`, `unreachable`; `killed` for a command that a signal ended. */
export function attemptResult({ target, outcome, status }: Attempt): string {
  if (status !== null) return formatStatus(target, status)
  if (outcome === 'killed') return 'interrupted'
  if (outcome !== 'refused') return outcome
  return isCommand(target) ? 'killed' : 'failed'
}

export interface TargetProgress {
  /** The target's `publicTargetId`. */
  readonly id: string
  /** The target without the password and query of an address. */
  readonly label: string
  readonly forward: Forward
  /** Attempts in order. Repeated attempts with the same outcome are one, with a count. */
  readonly attempts: readonly Attempt[]
  /** Why it waits, if that is known. */
  readonly waitsFor?: string
}

/** Reads the forwarding of an entry to each of its targets, in the order of the routes. @throws RelayError `storage` */
export async function progressOf(
  journal: Journal,
  { n, forwards }: Summary,
): Promise<readonly TargetProgress[]> {
  return Object.keys(forwards).length === 0 ? [] : progressAfter(forwards, await journal.attempts(n))
}

/** Says why each forward of an entry waits, from what the running relay's targets do. */
export function withReasons(
  n: number,
  progress: readonly TargetProgress[],
  instance: Pick<InstanceStatus, 'targets'> | undefined,
): readonly TargetProgress[] {
  const now = Date.now()
  return progress.map((each) => {
    const target =
      instance && (instance.targets.find(({ id }) => id === each.id) ?? { state: 'gone' as const })
    const reason = waitReason(n, each.forward, target, now)
    return { ...each, ...(reason && { waitsFor: waitText(reason, now) }) }
  })
}

function progressAfter(
  forwards: Summary['forwards'],
  attempts: readonly Attempt[],
): readonly TargetProgress[] {
  return Object.entries(forwards).map(([id, forward]) => ({
    id: publicTargetId(id),
    label: labelOf(id),
    forward,
    attempts: attempts.filter(({ target }) => target === id),
  }))
}

/** An entry of a list. */
export interface Listed {
  readonly summary: Summary
  readonly progress: readonly TargetProgress[]
}

/** Reads the attempts of an entry in a list. @throws RelayError `storage` */
export async function listed(journal: Journal, summary: Summary): Promise<Listed> {
  return { summary, progress: await progressOf(journal, summary) }
}

// Objects

export function deliveryFields(delivery: Omit<Delivery, 'body'>) {
  const {
    event,
    action,
    repo,
    number,
    kind,
    ref,
    receivedAt,
    provider,
    deliveryId,
    query,
    verifiedBy,
    restored,
  } = delivery
  return marked({
    time: timeField(receivedAt),
    provider: own(provider),
    source: own(provider),
    scheme: own(delivery.scheme ?? provider),
    delivery: outside(deliveryId),
    event: outside(event),
    action: outside(action),
    repo: outside(repo),
    number: outside(number),
    ...(kind && { kind: own(kind) }),
    ref: outside(ref ?? null),
    query: outside(query ?? null),
    verifiedBy,
    restored: outside(restored?.how ?? null),
    unproved: restored?.unproved ?? false,
    editedFrom: editedFrom(delivery) ?? null,
  })
}

export function attemptFields(attempt: Attempt, label: string) {
  const { at, outcome, status, ms, error } = attempt
  return marked({ time: timeField(at), target: own(label), outcome, status, ms, error: outside(error) })
}

export function summaryObject(summary: Omit<Summary, 'forwards'>, progress: readonly TargetProgress[]) {
  const { n, duplicates, size, ignoredBy = null } = summary
  const targets = progress.map(({ label, forward, attempts, waitsFor = null }) => {
    const { status: state, since, reason = null } = forward
    const { outcome = null, status = null, ms = null } = attempts.at(-1) ?? {}
    const count = attempts.reduce((sum, attempt) => sum + attempt.count, 0)
    const known = { target: own(label), state, reason: outside(reason), since: timeField(since) }
    return { ...known, waitsFor: outside(waitsFor), attempts: count, outcome, status, ms }
  })
  const known = { type: 'delivery', n, ...deliveryFields(summary), duplicates, size } as const
  return marked({ ...known, ignoredBy: own(ignoredBy), targets })
}

// Lines

/** Signs and names of the states. Each has a sign, since some readers do not see colours. */
export const STATES = {
  succeeded: { sign: '✓', color: green },
  failed: { sign: '✗', color: red },
  retry: { sign: '↻', color: yellow },
  waiting: { sign: '◦', color: yellow },
} as const

/**
 * Result of a delivery at one target: its state, a result such as `exit 1`, and a detail such as `38ms`; empty for
 * none.
 */
type Cell = readonly [state: keyof typeof STATES, result: string, detail: string]

/**
 * Formats `✓ 202 38ms`, `✗ exit 1 20ms`, `↻ 503 again in 2s`. `retryAt` is the time at which the target asked for
 * another attempt.
 */
export function attemptText(forward: Forward, attempt: Attempt | undefined, retryAt?: number): Text {
  return cellText(cellOf(forward, attempt, { retryAt }))
}

/** `waitsFor` is the reason why it waits, if that is known. */
function cellOf(
  { status, reason }: Forward,
  attempt: Attempt | undefined,
  {
    retryAt,
    waitsFor = '',
  }: { readonly retryAt?: number | undefined; readonly waitsFor?: string | undefined } = {},
): Cell {
  if (!attempt) return [status, status === 'waiting' ? 'waiting' : (reason ?? ''), waitsFor]
  const result = attemptResult(attempt)
  const time = shortTime(attempt.ms)
  if (status === 'waiting' && isSentAgain(attempt)) return ['retry', 'connection closed', 'again at once']
  if (status === 'succeeded') return [status, isCommand(attempt.target) ? '' : result, time]
  if (status === 'failed') return [status, result, [time, ...furtherReason(attempt, reason)].join(', ')]
  if (retryAt !== undefined) {
    const seconds = Math.round((retryAt - attempt.at - attempt.ms) / 1000)
    return ['retry', result, seconds < 1 ? 'again at once' : `again in ${seconds}s`]
  }
  if (attempt.outcome === 'retry') return ['retry', result, waitsFor || 'waiting']
  return attempt.outcome === 'unreachable'
    ? ['waiting', waitsFor || 'down', '']
    : ['waiting', result, waitsFor]
}

function furtherReason({ status, error }: Attempt, reason = error ?? ''): readonly string[] {
  const known = [`answered ${status}`, `exit code ${status}`].find((start) => reason.startsWith(start)) ?? ''
  const more = reason.slice(known.length).replace(/^, /, '')
  return more === '' ? [] : [more]
}

function cellText([state, result, detail]: Cell): Text {
  const { sign, color } = STATES[state]
  return spaced([color(sign), color(result), dim(detail)], ' ')
}

/** Joins the parts that are not empty. */
function spaced(parts: readonly Text[], gap: string): Text {
  return joined(
    parts.filter(({ ansi }) => ansi !== ''),
    gap,
  )
}

const GAP = '  '
/** Terminal width below which event, place and targets do not all fit. Columns. */
const MIN_WIDTH = 40
/** Shortest recognizable event. Columns. */
const MIN_EVENT = 5
/** Shortest recognizable name of a target. Columns. */
const MIN_NAME = 3
const UNROUTED = 'no route'

/**
 * Prints entries, one per line: on a terminal `12:04:11 #7 push octo/demo main app ✓ 202 38ms`, as wide as the widest
 * row so far if that fits; elsewhere `#7 2026-01-31 12:04:11 push octo/demo → http://localhost:3000 202 38ms`, in full,
 * with `-` for an empty column.
 */
export class Printer {
  readonly #now = Date.now()
  readonly #out: Output
  readonly #named: readonly NamedTarget[]
  readonly #hasRoutes: boolean
  /** Widths of the first two columns, of event and place, and the least width of the targets. */
  #widths = [0, 0, 0, 0, 'targets'.length]

  /** @param targets names of targets, also of former ones, and whether any is configured */
  constructor(
    out: Output,
    { named, hasRoutes }: { readonly named: readonly NamedTarget[]; readonly hasRoutes: boolean } = {
      named: [],
      hasRoutes: false,
    },
  ) {
    this.#out = out
    this.#named = named
    this.#hasRoutes = hasRoutes
  }

  /** Widens the columns for an entry that is printed later. */
  fit(summary: Summary): void {
    const shortest = this.#forms(progressAfter(summary.forwards, [])).at(-1) ?? textOf('')
    const end = this.#isUnrouted(summary) ? textOf(UNROUTED) : shortest
    const cells = [...this.#cells(summary), spaced([markOf(summary), end], GAP)]
    this.#widths = this.#widths.map((width, i) => Math.max(width, cells[i]?.width ?? 0))
  }

  /** Prints the names of the columns, for a person. */
  header(): void {
    if (!this.#out.isTerminal) return
    const names = ['time', '#', 'event', 'repository']
    this.#widths = this.#widths.map((width, i) => Math.max(width, names[i]?.length ?? 0))
    this.#out.result(this.#row(names.map(dim), (room) => dim('targets').cut(room)))
  }

  print({ summary, progress }: Listed): void {
    this.fit(summary)
    const end = this.#out.isTerminal
      ? (room: number) => this.#end(summary, progress, room)
      : () =>
          spaced(
            [progressText(progress, summary, this.#named), markOf(summary), yellow(noteOf(summary))],
            GAP,
          )
    const cells = this.#cells(summary, this.#share().event)
    this.#out.result(this.#row(cells, end))
  }

  #cells(summary: Summary, width = Infinity): Text[] {
    const { n, receivedAt } = summary
    const [number, place] = [textOf(`#${n}`), placeName(summary)]
    const event = bold(cutEvent(summary, width))
    if (this.#out.isTerminal) return [dim(spokenTime(receivedAt, this.#now)), number, event, textOf(place)]
    return [number, dim(localTime(receivedAt)), event, textOf(place || '-')]
  }

  #row(cells: readonly Text[], end: (room: number) => Text): Text {
    const { event, place, room } = this.#share()
    const [first = 0, second = 0] = this.#widths
    const widths = [first, second, event, place]
    const columns = cells.map((cell, i) => (i === 3 ? cell.cutStart(place) : cell).pad(widths[i] ?? 0))
    return joined([...columns, end(room)], GAP)
  }

  /**
   * Divides the line: event and place are cut if the targets need room for their names and signs, up to half of the
   * line. `room` is for the targets.
   */
  #share(): { readonly event: number; readonly place: number; readonly room: number } {
    const [first = 0, second = 0, wholeEvent = 0, wholePlace = 0, targets = 0] = this.#widths
    const { width } = this.#out
    const left = Math.max(width, MIN_WIDTH) - first - second - 4 * GAP.length
    const both = left - Math.min(targets, Math.floor(left / 2))
    const event = Math.min(wholeEvent, Math.max(both - wholePlace, Math.ceil(both / 2)))
    const place = Math.min(wholePlace, both - event)
    return { event, place, room: width - first - second - event - place - 4 * GAP.length }
  }

  /**
   * Formats the targets as far as they fit, with a note about an unusual entry if that fits too, or the reason why
   * there is no target.
   */
  #end(summary: Summary, progress: readonly TargetProgress[], room: number): Text {
    const { ignoredBy } = summary
    const note = noteOf(summary)
    const why = ignoredBy === undefined ? (this.#isUnrouted(summary) ? UNROUTED : '') : ignoredText(ignoredBy)
    const mark = markOf(summary)
    if (progress.length === 0) {
      const whole = spaced([mark, yellow([why, note].filter(Boolean).join(', '))], GAP)
      return (whole.width <= room || mark.width === 0 ? whole : mark).cut(room)
    }
    const forms = this.#forms(progress).map((form) => spaced([mark, form], GAP))
    const noted = note === '' ? [] : forms.map((form) => joined([form, yellow(note)], GAP))
    return [...noted, ...forms].find(({ width }) => width <= room) ?? this.#narrow(progress, mark, room)
  }

  /**
   * Formats the targets in too little room: it cuts their names, if necessary to nothing, and never their states. If the states
   * do not fit either, they continue in another line.
   */
  #narrow(progress: readonly TargetProgress[], mark: Text, room: number): Text {
    const names = shortNames([...this.#named, ...progress])
    const cells = progress.map(({ forward, attempts }) => {
      const [state, result] = cellOf(forward, attempts.at(-1))
      return cellText([state, state === 'succeeded' ? '' : result, ''])
    })
    const states = spaced([mark, ...cells], GAP)
    const forName = Math.floor((room - states.width) / cells.length) - 1
    if (forName < MIN_NAME) return states
    const named = progress.map(
      ({ id }, i) => t`${textOf(names.get(id) ?? id).cut(forName)} ${cells[i] ?? ''}`,
    )
    return spaced([mark, ...named], GAP)
  }

  /**
   * Formats the targets, shorter and shorter: `app ✓ 202 38ms`, `app ✓ 202`, `:3000 ✓ 202`, `:3000 ✓`. What has not
   * succeeded stays longest.
   */
  #forms(progress: readonly TargetProgress[]): readonly Text[] {
    const names = shortNames([...this.#named, ...progress])
    return [0, 1, 2, 3].map((form) => {
      const texts = progress.map(({ id, forward, attempts, waitsFor }) => {
        const [state, result, detail] = cellOf(forward, attempts.at(-1), form === 0 ? { waitsFor } : {})
        const name = names.get(id) ?? id
        const near = name.replace(/^(?:localhost|127\.0\.0\.1|\[::1\])(?=:\d)/, '')
        const isShown = form < 3 || state !== 'succeeded'
        const cell = cellText([state, isShown ? result : '', form === 0 ? detail : ''])
        return t`${form < 2 ? name : near} ${cell}`
      })
      return spaced(texts, GAP)
    })
  }

  /** True if no route matched although there are some. */
  #isUnrouted({ forwards, ignoredBy }: Summary): boolean {
    return Object.keys(forwards).length === 0 && ignoredBy === undefined && this.#hasRoutes
  }
}

/** Marks an unproved delivery, first, so that it is visible in little room. */
function markOf({ verifiedBy }: Summary): Text {
  return yellow(verifiedBy === 'none' ? UNVERIFIED : '')
}

/** Formats `edited copy of #3, 1 duplicate`; empty for a usual entry. */
function noteOf(summary: Summary): string {
  const from = editedFrom(summary)
  const { duplicates: count } = summary
  const duplicates = count === 0 ? '' : `${count} duplicate${count === 1 ? '' : 's'}`
  return [from === undefined ? '' : `edited copy of #${from}`, duplicates].filter(Boolean).join(', ')
}

/**
 * Formats the last response of a single target. For several, counts those that failed or wait, and names them: `1 of 2 waiting: app
 * (down: connection refused)`.
 */
function progressText(
  progress: readonly TargetProgress[],
  { ignoredBy }: Summary,
  named: readonly NamedTarget[],
): Text {
  const [only] = progress
  if (!only) return textOf(ignoredBy === undefined ? '-' : ignoredText(ignoredBy))
  const names = shortNames([...named, ...progress])
  const total = progress.length
  if (total === 1) {
    const { label, forward, attempts, waitsFor } = only
    const last = attempts.at(-1)
    const { status } = forward
    const word = waitsFor === undefined ? status : `${status}, ${waitsFor}`
    const state = STATES[status].color(status === 'succeeded' ? '' : word)
    const answer = last ? `${attemptResult(last)} ${shortTime(last.ms)}` : ''
    return spaced([textOf(`→ ${label}`), textOf(answer), state], ' ')
  }
  const counts = (['failed', 'waiting'] as const).flatMap((state) => {
    const found = progress.filter(({ forward }) => forward.status === state)
    const each = found.map(({ id, waitsFor }) => t`${names.get(id) ?? id}${waitsFor ? ` (${waitsFor})` : ''}`)
    if (found.length === 0) return []
    return [t`${STATES[state].color(`${found.length} of ${total} ${state}`)}: ${joined(each, ', ')}`]
  })
  return counts.length === 0 ? textOf(`→ ${total} targets`) : joined(counts, '; ')
}

/**
 * Formats `pull_requ….opened`: the action says more than the end of the event, as long as the event stays recognizable.
 */
function cutEvent(delivery: DeliveryName, width: number): Text {
  const whole = textOf(sourcedName(delivery))
  const action = textOf(delivery.action === null ? '' : `.${delivery.action}`)
  const room = width - action.width
  if (whole.width <= width || action.width === 0 || room < MIN_EVENT) return whole.cut(width)
  return t`${textOf(delivery.event).cut(room)}${action}`
}

// Hooks and catching up

/** Formats `hook of octo/demo created: https://smee.io/…`. */
export function hookStateText(repo: string, { hook, created, repaired, found }: RegisteredHook): string {
  const what = created ? 'created' : repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'is ready'
  const others = found
    ? ' (it was there before, and now has the webhook secret of this profile; another relay at this address needs the same)'
    : ''
  return `hook of ${repo} ${what}: ${hook.url}${others}`
}

/** Says until when the code host sends nothing through a hook, and why: a clause about the hook. */
export function pausedText({ until }: HookPause): string {
  const how =
    until === undefined
      ? 'is disabled by the code host'
      : `is paused by the code host until ${localTime(until)}`
  return `${how}, since deliveries to it failed, and what happens meanwhile is never sent`
}

/** {@link pausedText} with the fix. `testCommand` is the command line that tests the hook. */
export function pauseText(pause: HookPause, testCommand: string): string {
  return `${pausedText(pause)}. A successful test makes it send again at once: ${testCommand}`
}

/** Describes a pause for a program. Null: until a test succeeds. */
export function pauseObject({ until }: HookPause) {
  return { until: until === undefined ? null : timeField(until) }
}

/** Formats `webhook of the App relay-1a2b3c4d leads here: https://smee.io/…`. */
export function appHookText(
  app: string,
  { url, repaired }: { readonly url: string; readonly repaired: readonly string[] },
): string {
  const what = repaired.length > 0 ? `repaired (${repaired.join(', ')})` : 'leads here'
  return `webhook of ${app} ${what}: ${url}`
}

/**
 * Formats `caught up with octo/demo: 40 missing, 38 arrived, 2 could not be had (…)`. The first reason stands for all.
 */
export function caughtUpText(repo: string, { missing, arrived, failed }: CatchUpResult): string {
  if (missing === 0) return `caught up with ${repo}: nothing was missing`
  const [first] = failed
  const rest = first ? `, ${failed.length} could not be had (${failedText(first)})` : ''
  return `caught up with ${repo}: ${missing} missing, ${arrived} arrived${rest}`
}

/** Formats the advice about deliveries that could not be had. */
export function askAgain(command: (line: string) => string): string {
  return `${command('doctor')} checks the hook; ${command('catch-up')} asks again`
}

/** Formats `issues.opened of 2026-01-31 12:00:00: it did not arrive within 30 s`. */
export function failedText({ delivery, why }: FailedDelivery): string {
  return `${eventName(delivery)} of ${localTime(delivery.deliveredAt)}: ${why}`
}

export function failedObject({ delivery, why }: FailedDelivery) {
  return marked({ ...missedObject(delivery), why: outside(why) })
}

/** Describes a delivery of the code host's log for a program. */
export function missedObject({ id, guid, event, action, deliveredAt }: FailedDelivery['delivery']) {
  const known = { id: outside(id), guid: outside(guid), event: outside(event), action: outside(action) }
  return marked({ ...known, deliveredAt: timeField(deliveredAt) })
}
