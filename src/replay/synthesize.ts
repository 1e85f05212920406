import { randomUUID } from 'node:crypto'
import type { Command } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { didYouMean } from '../base/text.js'
import { nearestMatch, sentEvents } from '../senders/events.js'
import { hostEvents } from '../senders/hosts.js'
import { senderOf } from '../senders/senders.js'
import { fieldsOf } from '../json/parse.js'
import type { NamedScheme } from '../base/settings.js'
import type { MakeOptions } from '../senders/making.js'
import { type Edit, editBody } from './edit.js'
import { freshened } from './freshen.js'
import { type Fixture, fixtureBody, fromFixture, type RecordedDelivery } from './fixture.js'
import { packagedEvents, packagedExamples, packagedFixture } from './load.js'
import { deliveryId, prepareRequest } from './prepare.js'

/** Repository of synthesized deliveries, which is the sandbox's. */
const REPO = 'octo/demo'

/** Its default branch, and the texts that name that of GitHub's examples: `master`, `refs/heads/master`, `octo:master`. */
const DEFAULT_BRANCH = 'main'
const FORMER_BRANCH = /^((?:refs\/heads\/|[\w.-]+:)?)master$/

/** Web addresses of code hosts in fixtures. */
const FIXTURE_HOSTS = /https:\/\/(?:github\.com|git(?:ea|lab)\.example\.com)(?=[/"])/g

/** Common events, which are listed first. The first action of an event is the usual one. */
const COMMON: Readonly<Record<string, string>> = {
  github: `ping push check_run.completed check_suite.completed create delete fork issues.opened issues.closed
    issues.edited issues.labeled issues.reopened issue_comment.created issue_comment.deleted issue_comment.edited
    pull_request.opened pull_request.closed pull_request.labeled pull_request.ready_for_review
    pull_request.reopened pull_request.synchronize pull_request_review.submitted release.published
    star.created star.deleted watch.started workflow_run.completed`,
  gitea: `push create delete repository.created repository.deleted wiki.created wiki.edited wiki.deleted
    issues.opened issues.closed issues.reopened issue_comment.created issue_comment.deleted
    issue_comment.edited pull_request.opened pull_request.closed pull_request.reopened pull_request.synchronized`,
  'gitlab-host': `push tag_push issue.open issue.close note.create merge_request.open merge_request.update merge_request.merge
    pipeline job deployment release.create`,
}

/** Code hosts whose fixtures relay has written, all at one time. Others are examples of the code hosts themselves. */
const WRITTEN: ReadonlySet<string> = new Set(['gitlab-host'])

/** Events with a packaged fixture, for a code host or the text of a scheme: `event` or `event.action`. */
export function triggerEvents(provider: string): string[] {
  const { events } = senderOf(provider)
  if (!events) return [...packagedExamples(senderOf(provider).name).keys()]
  const folder = folderOf(provider)
  const sent = sentEvents(events)
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
 * Creates an unsigned delivery about the sandbox's repository, as the code host at `url` would send it now: the fixture
 * of the event, with another repository and current dates. An event without an action has the usual one.
 * @throws RelayError `usage` when there is no fixture of the event
 */
export function synthesize(
  provider: string,
  text: string,
  now: number,
  { url, words }: ExampleOptions,
): Fixture {
  const all = triggerEvents(provider)
  const name = all.find((each) => each === text) ?? all.find((each) => each.startsWith(`${text}.`))
  if (name === undefined) {
    const near = nearestMatch(text, hostEvents(provider))
    const isKnown = all.some((each) => each === near || each.startsWith(`${near}.`))
    const hint = isKnown ? ` (did you mean ${near}?)` : ''
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}${hint}: ${words.list()} has them`,
    )
  }
  const [event = ''] = name.split('.')
  const sender = senderOf(provider)
  const packaged = packagedFixture(folderOf(provider), name)
  const original = Buffer.from(
    fixtureBody(WRITTEN.has(folderOf(provider)) ? freshened(packaged, now) : packaged),
  ).toString()
  const recorded = original.replaceAll(FIXTURE_HOSTS, (host) => url ?? host)
  const edits = editsOf(JSON.parse(recorded), now)
  const body = Buffer.from(
    editBody(Buffer.from(recorded), edits, sender.kindOf(Buffer.from(recorded), event)),
  )
  const delivery = randomUUID()
  const headers = Object.fromEntries(sender.headersOf(event, delivery))
  return { relay: 1, provider, event, delivery, headers, body: body.toString() }
}

function withFreshId(recorded: RecordedDelivery): RecordedDelivery {
  const request = prepareRequest(recorded, { secrets: undefined, freshId: true, isMade: true })
  return { ...recorded, ...request, deliveryId: deliveryId(request, recorded) }
}

/**
 * Creates an unsigned delivery of any sender from a packaged example of the event. One of a code host has the addresses
 * of `url`.
 * @throws RelayError `usage` when there is none
 */
export function exampleDelivery(
  { name: source, scheme }: Sent,
  text: string,
  options: ExampleOptions,
): RecordedDelivery {
  const sender = senderOf(scheme)
  if (sender.events)
    return { ...fromFixture(synthesize(scheme, text, Date.now(), options)), provider: source, scheme }
  const files = packagedExamples(sender.name)
  const all = [...files.keys()]
  const file = files.get(text) ?? files.get(all.find((each) => each.startsWith(`${text}.`)) ?? '')
  if (file !== undefined) {
    const found = freshened(packagedFixture(sender.name, file), Date.now())
    const recorded = { ...fromFixture(found), provider: source, scheme }
    const request = prepareRequest(recorded, { secrets: undefined })
    return { ...recorded, ...request, deliveryId: sender.idOf(request) ?? recorded.deliveryId }
  }
  const hint = didYouMean(text, all)
  const others = all.length > 0 ? `${options.words.list({ name: source, scheme })} has them, and ` : ''
  throw new RelayError(
    'usage',
    `There is no example of ${JSON.stringify(text)}${hint}: ${others}${options.words.body} sends a body of your own`,
  )
}

type Sent = NamedScheme

/** Commands that list the examples and send a body of the user's own, in the words of the caller. */
export interface ExampleWords {
  /** Without a source, those of the code host. */
  readonly list: (source?: NamedScheme) => string
  readonly body: string
}

/** {@link ExampleWords} of the command line. */
export function commandWords(command: Command): ExampleWords {
  const list = (source?: NamedScheme): string =>
    command(source === undefined ? 'trigger --list' : `trigger --list --source ${source.name}`)
  return { list, body: '--body' }
}

interface ExampleOptions {
  /** The code host's address. Default: as recorded. */
  readonly url?: string | undefined
  readonly words: ExampleWords
}

/**
 * Creates an unsigned delivery of these bytes, with a new id unless `keepId`. `added` names the members for the
 * sender's event and id that the body lacked.
 * @throws RelayError `usage` if the event is neither given nor in the body, the body has another one, or its scheme has
 * no location for it
 */
export function deliveryOf(
  { name: source, scheme }: Sent,
  given: string | undefined,
  body: Uint8Array,
  { keepId = false, words }: Partial<MakeOptions> = {},
): { readonly recorded: RecordedDelivery; readonly added: readonly string[] } {
  const { added, ...made } = senderOf(scheme).make(body, given, { keepId, words })
  const recorded = { ...made, provider: source, scheme }
  return { recorded: keepId ? recorded : withFreshId(recorded), added }
}

/** The sandbox sends what GitHub does. */
function folderOf(provider: string): string {
  return Object.hasOwn(COMMON, provider) ? provider : 'github'
}

/** Members that existed before the event, whose dates do not change. */
const LASTING =
  /^(?:repo|repository|forkee|organization|sender|owner|user|pusher|app|installation|hook|milestone)$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

function editsOf(payload: unknown, now: number): Edit[] {
  const value = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const { repository } = fieldsOf(payload)
  const rename = repository ? [{ path: ['repository', 'full_name'], value: REPO }] : []
  const dates = textsIn(payload, INSTANT, LASTING).map(([path]) => ({ path, value, only: true }))
  const branches = textsIn(payload, FORMER_BRANCH).map(([path, text]) => {
    return { path, value: text.replace(FORMER_BRANCH, `$1${DEFAULT_BRANCH}`), only: true }
  })
  return [...rename, ...dates, ...branches]
}

/** Finds the texts that match, with their paths. Members whose names match `except` are left out. */
function textsIn(
  value: unknown,
  wanted: RegExp,
  except?: RegExp,
  path: Edit['path'] = [],
): (readonly [path: Edit['path'], text: string])[] {
  if (typeof value === 'string') return wanted.test(value) ? [[path, value]] : []
  if (typeof value !== 'object' || value === null) return []
  const members: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value)
  return members.flatMap(([key, each]) =>
    except?.test(String(key)) ? [] : textsIn(each, wanted, except, [...path, key]),
  )
}
