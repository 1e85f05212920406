import { randomUUID } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { nearestMatch, sentEvents } from '../codehost/events.js'
import { schemeOf } from '../codehost/schemes.js'
import { type Edit, editBody } from './edit.js'
import { type Fixture, fixtureBody } from './fixture.js'
import { packagedEvents, packagedFixture } from './load.js'

/** The repository that made-up deliveries are about: the sandbox's. */
const REPO = 'octo/demo'

/** The common ones first. The first action of an event is the usual one. */
const COMMON: Readonly<Record<string, string>> = {
  github: `ping push check_run.completed check_suite.completed create delete fork issues.opened issues.closed
    issues.edited issues.labeled issues.reopened issue_comment.created issue_comment.deleted issue_comment.edited
    pull_request.opened pull_request.closed pull_request.labeled pull_request.ready_for_review
    pull_request.reopened pull_request.synchronize pull_request_review.submitted release.published
    star.created star.deleted watch.started workflow_run.completed`,
  gitea: `push create delete repository.created repository.deleted wiki.created wiki.edited wiki.deleted
    issues.opened issues.closed issues.reopened issue_comment.created issue_comment.deleted
    issue_comment.edited pull_request.opened pull_request.closed pull_request.reopened pull_request.synchronized`,
}

/** The events that this package has a fixture of: `event` or `event.action`. */
export function triggers(provider: string): string[] {
  const folder = folderOf(provider)
  const sent = sentEvents(schemeOf(provider).events)
  // Other fixtures are variants of an event.
  const isEvent = (name: string): boolean => {
    const [event = '', action, ...more] = name.split('.')
    const actions = sent.get(event)
    return more.length === 0 && (action === undefined || (actions?.includes(action) ?? false))
  }
  const common = (COMMON[folder] ?? '').split(/\s+/)
  return [...new Set([...common, ...packagedEvents(folder).filter(isEvent)])]
}

/**
 * Creates an unsigned delivery about the sandbox's repository, as the code host would send it now: the fixture of the event, about another
 * repository and with the dates of now. An event without its action means the usual action.
 * @throws RelayError `usage` when there is no fixture of the event
 */
export function synthesize(provider: string, text: string, now: number): Fixture {
  const all = triggers(provider)
  const name = all.find((each) => each === text) ?? all.find((each) => each.startsWith(`${text}.`))
  if (name === undefined) {
    const near = nearestMatch(text, schemeOf(provider).events)
    const hint = all.some((each) => each === near) ? ` (did you mean ${near}?)` : ''
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}${hint}: relay trigger --list has them`,
    )
  }
  const [event = ''] = name.split('.')
  const scheme = schemeOf(provider)
  const recorded = fixtureBody(packagedFixture(folderOf(provider), name))
  const edits = editsOf(JSON.parse(Buffer.from(recorded).toString()), now)
  const body = Buffer.from(editBody(recorded, edits, { form: false, style: scheme.style(event) }))
  const delivery = randomUUID()
  const headers = scheme.headers(event, delivery, body)
  return { relay: 1, provider, event, delivery, headers, body: body.toString() }
}

function folderOf(provider: string): string {
  return provider === 'gitea' ? 'gitea' : 'github'
}

/** What was there before the event, with dates of its own. */
const LASTING =
  /^(?:repo|repository|forkee|organization|sender|owner|user|pusher|app|installation|hook|milestone)$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

function editsOf(payload: unknown, now: number): Edit[] {
  const value = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const { repository }: { readonly repository?: unknown } = Object(payload)
  const rename = repository ? [{ path: ['repository', 'full_name'], value: REPO }] : []
  return [...rename, ...instantsIn(payload).map((path) => ({ path, value, only: true }))]
}

/** The places of the dates of what the event is about. */
function instantsIn(value: unknown, path: Edit['path'] = []): Edit['path'][] {
  if (typeof value === 'string') return INSTANT.test(value) ? [path] : []
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap((each, i) => instantsIn(each, [...path, i]))
  return Object.entries(value).flatMap(([key, each]) =>
    LASTING.test(key) ? [] : instantsIn(each, [...path, key]),
  )
}
