import { suggest } from '../base/suggest.js'
import type { EventActions } from './event-actions.js'

/** Words for events, and the events that are meant. Not all exist at every code host. */
const MEANINGS: Readonly<Record<string, readonly string[]>> = {
  branch: ['create'],
  build: ['workflow_run', 'check_run'],
  ci: ['workflow_run', 'check_run'],
  comment: ['issue_comment'],
  commit: ['push'],
  merge: ['pull_request.closed'],
  merge_request: ['pull_request'],
  merged: ['pull_request.closed'],
  mr: ['pull_request'],
  pr: ['pull_request'],
  review: ['pull_request_review', 'pull_request_approved'],
  tag: ['create'],
  tag_push: ['create'],
}

/** Words for actions, the likeliest meaning first. */
const ACTION_MEANINGS: Readonly<Record<string, readonly string[]>> = {
  changed: ['edited', 'updated'],
  close: ['closed', 'completed'],
  create: ['created', 'opened'],
  created: ['opened', 'published'],
  failed: ['completed'],
  finished: ['completed'],
  merge: ['closed'],
  merged: ['closed'],
  new: ['opened', 'created'],
  opened: ['created'],
  pushed: ['synchronize', 'synchronized'],
  success: ['completed'],
  updated: ['synchronize', 'synchronized', 'edited'],
}

/** Any action, as people choose them for `repository_dispatch`. */
const ANY = '*'

/**
 * Why a code host sends nothing that fits this match (`push`, `issues.opened`, `*.closed`), with the nearest right one.
 * Undefined if it may.
 */
export function whyNeverSent(match: string, provider: string, all: EventActions): string | undefined {
  const [event = '', action] = match.split('.', 2)
  if (event === ANY) return action === undefined ? undefined : whyNoAction(event, action, provider, all)
  if (all.has(event)) return action === undefined ? undefined : whyNoAction(event, action, provider, all)
  const rest = nearestEvent(event, action, all)
  return `${provider} sends no event ${event}${rest === undefined ? '' : ` (did you mean ${rest}?)`}`
}

/** The match that is probably meant by one that fits none of these events; undefined if nothing is near. */
export function nearestMatch(match: string, all: EventActions): string | undefined {
  const [event = '', action] = match.split('.', 2)
  if (!all.has(event)) return nearestEvent(event, action, all)
  return action === undefined ? event : withAction(event, action, all)
}

function nearestEvent(event: string, action: string | undefined, all: EventActions): string | undefined {
  const names = [...all.keys()]
  const meant =
    MEANINGS[event]?.find((name) => names.includes(name.split('.')[0] ?? '')) ?? suggest(event, names)
  return meant === undefined || action === undefined || meant.includes('.')
    ? meant
    : withAction(meant, action, all)
}

function whyNoAction(event: string, action: string, provider: string, all: EventActions): string | undefined {
  const actions = event === ANY ? knownActions(all) : (all.get(event) ?? [])
  if (action === ANY || actions.includes(ANY) || actions.includes(action)) return undefined
  const what =
    event === ANY ? `${provider} sends no event with the action ${action}` : `${provider} sends ${event} `
  if (event !== ANY && actions.length === 0) return `${what}without an action (did you mean ${event}?)`
  const meant = nearestAction(action, actions)
  const hint = meant === undefined ? '' : ` (did you mean ${event}.${meant}?)`
  return event === ANY
    ? `${what}${hint}`
    : `${what}with other actions than ${action}${hint || `: ${actions.join(', ')}`}`
}

function knownActions(all: EventActions): readonly string[] {
  return [...new Set([...all.values()].flat())].filter((action) => action !== ANY)
}

function withAction(event: string, action: string, all: EventActions): string {
  const actions = all.get(event) ?? []
  const meant = action === ANY || actions.includes(action) ? action : nearestAction(action, actions)
  return meant === undefined ? event : `${event}.${meant}`
}

function nearestAction(action: string, actions: readonly string[]): string | undefined {
  return ACTION_MEANINGS[action]?.find((each) => actions.includes(each)) ?? suggest(action, actions)
}
