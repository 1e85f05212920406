import { hostSource } from '../base/source-names.js'
import { suggest } from '../base/text.js'
import { memberOf } from '../json/parse.js'
import type { EventSpec, EventTable } from './scheme.js'

/**
 * Parses a table of events, one per line: `name: marks | action action …`. The flag `bare` or `repeatable` may follow
 * the name; `repeatable` can have marks of its own: `push repeatable(before==after): ref commits |`. A line indented by
 * six spaces or more continues the previous one.
 * Event headers are not signed, but the payload is. Marks are the members that distinguish a payload from those of
 * other events:
 * - `comment`, `alert.tool`: the payload has this member, even with the value null
 * - `!comment`: it has no such member
 * - `action=started|stopped`: the member is one of these texts
 * - `before==after`: both members are the same text
 * Only members that the code host itself writes are marks, so that no author of an issue or a commit can add or hide
 * one. An event without marks is proved by no payload. One without ` |` is proved, but sent to no hook that relay
 * makes. `*` is any action.
 */
export function eventTable(text: string): EventTable {
  const lines = text
    .replaceAll(/\n {6,}/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  return new Map(
    lines.map((line) => {
      const [head = '', actions] = line.split(/ \|(?: |$)/)
      const [, name = '', flags = '', marks = ''] = /^ *(\w+)([^:]*):(.*)$/.exec(head) ?? []
      const [isRepeatable, own] = /\brepeatable(?:\((.*)\))?/.exec(flags) ?? []
      const spec: EventSpec = {
        marks: wordsIn(marks),
        bare: flags.includes('bare'),
        repeatable: isRepeatable === undefined ? undefined : (wordsIn(own) ?? []),
        actions: actions === undefined ? undefined : (wordsIn(actions) ?? []),
      }
      return [name, spec] as const
    }),
  )
}

/** Splits text into words. Undefined if there are none. */
function wordsIn(text = ''): readonly string[] | undefined {
  const words = text.split(' ').filter(Boolean)
  return words.length === 0 ? undefined : words
}

/** Events that a payload may belong to. Empty if the table does not know its kind. */
export function eventsOf(payload: unknown, table: EventTable): readonly string[] {
  const fitting = (isBare: boolean): readonly string[] =>
    [...table].flatMap(([event, { bare, marks }]) =>
      bare === isBare && marks?.every((mark) => isMarked(payload, mark)) ? [event] : [],
    )
  const own = fitting(false)
  return own.length > 0 ? own : fitting(true)
}

/** True if the code host can send this payload again for a new occurrence. `event` is one of the payload's events. */
export function isRepeatable(event: string, payload: unknown, table: EventTable): boolean {
  return table.get(event)?.repeatable?.every((mark) => isMarked(payload, mark)) ?? false
}

/** True if a payload has a mark of an event: see {@link eventTable}. */
export function isMarked(payload: unknown, mark: string): boolean {
  if (mark.startsWith('!')) return memberOf(payload, mark.slice(1)) === undefined
  const [path = '', values, same] = mark.split('=')
  const member = memberOf(payload, path)
  if (same !== undefined) return typeof member === 'string' && member === memberOf(payload, same)
  if (values === undefined) return member !== undefined
  return typeof member === 'string' && values.split('|').includes(member)
}

/** Common words for events, with the events' names. Not all exist at every code host. */
const MEANINGS: Readonly<Record<string, readonly string[]>> = {
  branch: ['create'],
  build: ['workflow_run', 'check_run', 'job'],
  ci: ['workflow_run', 'check_run', 'pipeline'],
  comment: ['issue_comment', 'note'],
  commit: ['push'],
  commit_comment: ['note'],
  deployment_status: ['deployment'],
  gollum: ['wiki_page', 'wiki'],
  issue_comment: ['note'],
  issues: ['issue'],
  merge: ['pull_request.closed', 'merge_request.merge'],
  merge_request: ['pull_request'],
  merged: ['pull_request.closed', 'merge_request.merge'],
  mr: ['pull_request', 'merge_request'],
  pr: ['pull_request', 'merge_request'],
  pull_request: ['merge_request'],
  pull_request_review: ['merge_request'],
  pull_request_review_comment: ['note'],
  review: ['pull_request_review', 'pull_request_approved'],
  tag: ['create', 'tag_push'],
  tag_push: ['create'],
  wiki: ['gollum', 'wiki_page'],
  workflow_job: ['job'],
  workflow_run: ['pipeline'],
}

/** Common words for actions, the likeliest action first. */
const ACTION_MEANINGS: Readonly<Record<string, readonly string[]>> = {
  changed: ['edited', 'updated'],
  close: ['closed', 'completed'],
  closed: ['close'],
  create: ['created', 'opened'],
  created: ['opened', 'published', 'create', 'open'],
  failed: ['completed'],
  finished: ['completed'],
  merge: ['closed'],
  merged: ['closed', 'merge'],
  new: ['opened', 'created', 'open', 'create'],
  opened: ['created', 'open'],
  pushed: ['synchronize', 'synchronized'],
  success: ['completed'],
  reopened: ['reopen'],
  synchronize: ['update'],
  updated: ['synchronize', 'synchronized', 'edited', 'update'],
}

/** Any action: users choose those of `repository_dispatch` themselves. */
const ANY = '*'

/**
 * Explains why a code host never sends an event for this match (`push`, `issues.opened`, `*.closed`), with the closest
 * valid one. Undefined if it may.
 */
export function neverSentReason(match: string, provider: string, table: EventTable): string | undefined {
  const own = `${hostSource(provider)}/`
  if (match.startsWith(own)) return neverSentReason(match.slice(own.length), provider, table)
  // The match is for another source, which the table does not cover.
  if (match.includes('/')) return undefined
  const [event = '', action = ANY] = match.split('.', 2)
  const known = sentEvents(table)
  const all = new Set([...known.values()].flat().filter((each) => each !== ANY))
  const actions = event === ANY ? [...all] : known.get(event)
  if (!actions) {
    const meant = hint(nearestMatch(match, table))
    return `${provider} sends no event ${event}${meant || `. For one of another source, write <source>/${match}`}`
  }
  if (action === ANY || actions.includes(ANY) || actions.includes(action)) return undefined
  if (actions.length === 0) return `${provider} sends ${event} without an action${hint(event)}`
  const meant = nearestAction(action, actions)
  const nearest = hint(meant && `${event}.${meant}`)
  return event === ANY
    ? `${provider} sends no event with the action ${action}${nearest}`
    : `${provider} sends ${event} with other actions than ${action}${nearest || `: ${actions.join(', ')}`}`
}

function hint(meant: string | undefined): string {
  return meant === undefined ? '' : ` (did you mean ${meant}?)`
}

/** Finds the match that was probably meant by an invalid one. Undefined if none is close. */
export function nearestMatch(match: string, table: EventTable): string | undefined {
  const [event = '', action] = match.split('.', 2)
  const known = sentEvents(table)
  const withAction = (name: string): string => {
    const actions = known.get(name) ?? []
    if (action === undefined) return name
    const meant = action === ANY || actions.includes(action) ? action : nearestAction(action, actions)
    return meant === undefined ? name : `${name}.${meant}`
  }
  if (known.has(event)) return withAction(event)
  const word = MEANINGS[event]?.find((name) => known.has(name.split('.')[0] ?? ''))
  const meant = word ?? suggest(event, [...known.keys()])
  return meant === undefined || meant.includes('.') ? meant : withAction(meant)
}

/** Events that the code host sends to hooks, with their actions. */
export function sentEvents(table: EventTable): ReadonlyMap<string, readonly string[]> {
  return new Map([...table].flatMap(([event, { actions }]) => (actions ? [[event, actions] as const] : [])))
}

function nearestAction(action: string, actions: readonly string[]): string | undefined {
  return ACTION_MEANINGS[action]?.find((each) => actions.includes(each)) ?? suggest(action, actions)
}
