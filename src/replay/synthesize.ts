import { randomUUID } from 'node:crypto'
import type { Command } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { isCodeHost } from '../base/settings.js'
import { didYouMean } from '../base/text.js'
import { nearestMatch, sentEvents } from '../codehost/events.js'
import { hostScheme, schemeOf } from '../codehost/schemes.js'
import { indexHeaders } from '../http/headers.js'
import { fieldsOf, isObject, parseJson } from '../json/parse.js'
import { nameText, isInBody, type ValueLocation, valueAt, type WebhookScheme } from '../schemes/scheme.js'
import { SCHEME_NAMES } from '../schemes/senders.js'
import { parsePayload } from '../webhook/intake.js'
import { isForm, type Source } from '../webhook/signature.js'
import { type Edit, editBody, type JsonMember, setMembers } from './edit.js'
import { type Fixture, fixtureBody, fromFixture, type RecordedDelivery } from './fixture.js'
import { packagedEvents, packagedFixture } from './load.js'
import { deliveryId, prepareRequest } from './prepare.js'

/** Repository of synthesized deliveries, which is the sandbox's. */
const REPO = 'octo/demo'

/** Web addresses of code hosts in fixtures. */
const FIXTURE_HOSTS = /https:\/\/(?:github\.com|gitea\.example\.com)(?=\/)/g

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
}

/** Events with a packaged fixture, for a code host or the text of a scheme: `event` or `event.action`. */
export function triggerEvents(provider: string): string[] {
  if (!isCodeHost(provider)) return examplesOf(provider).map(({ event }) => event)
  const folder = folderOf(provider)
  const sent = sentEvents(hostScheme(provider).events)
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
  { url, command }: ExampleOptions,
): Fixture {
  const all = triggerEvents(provider)
  const name = all.find((each) => each === text) ?? all.find((each) => each.startsWith(`${text}.`))
  if (name === undefined) {
    const near = nearestMatch(text, hostScheme(provider).events)
    const isKnown = all.some((each) => each === near || each.startsWith(`${near}.`))
    const hint = isKnown ? ` (did you mean ${near}?)` : ''
    throw new RelayError(
      'usage',
      `There is no template for ${JSON.stringify(text)}${hint}: ${command('trigger --list')} has them`,
    )
  }
  const [event = ''] = name.split('.')
  const scheme = hostScheme(provider)
  const original = Buffer.from(fixtureBody(packagedFixture(folderOf(provider), name))).toString()
  const recorded = original.replaceAll(FIXTURE_HOSTS, (host) => url ?? host)
  const edits = editsOf(JSON.parse(recorded), now)
  const body = Buffer.from(
    editBody(Buffer.from(recorded), edits, { form: false, style: scheme.style(event) }),
  )
  const delivery = randomUUID()
  const headers = scheme.headers(event, delivery)
  return { relay: 1, provider, event, delivery, headers, body: body.toString() }
}

function withFreshId(recorded: RecordedDelivery): RecordedDelivery {
  const request = prepareRequest(recorded, { secret: undefined, freshId: true, isMade: true })
  return { ...recorded, ...request, deliveryId: deliveryId(request, recorded) }
}

/** Packaged fixtures of a scheme. One that the user defines has none. */
function examplesOf(scheme: string): readonly Fixture[] {
  const isPackaged = SCHEME_NAMES.includes(scheme)
  return isPackaged ? packagedEvents(scheme).map((name) => packagedFixture(scheme, name)) : []
}

/**
 * Creates an unsigned delivery of any sender from a packaged example of the event. One of a code host has the addresses
 * of `url`.
 * @throws RelayError `usage` when there is none
 */
export function exampleDelivery(
  { name: source, schemeText: scheme }: Sent,
  text: string,
  options: ExampleOptions,
): RecordedDelivery {
  if (isCodeHost(scheme))
    return { ...fromFixture(synthesize(scheme, text, Date.now(), options)), provider: source, scheme }
  const all = examplesOf(scheme)
  const found =
    all.find(({ event }) => event === text) ?? all.find(({ event }) => event.startsWith(`${text}.`))
  const signatures = new Set(schemeOf(scheme).proofs.map(({ header }) => header))
  if (found) {
    const { headers, ...recorded } = fromFixture(found)
    const unsigned = headers.filter(([name]) => !signatures.has(name.toLowerCase()))
    return withFreshId({ ...recorded, provider: source, scheme, headers: unsigned })
  }
  const hint = didYouMean(
    text,
    all.map(({ event }) => event),
  )
  const others =
    all.length > 0 ? `${options.command(`trigger --list --source ${source}`)} has them, and ` : ''
  throw new RelayError(
    'usage',
    `There is no example of ${JSON.stringify(text)}${hint}: ${others}--body sends a body of your own`,
  )
}

type Sent = Pick<Source, 'name' | 'schemeText'>

interface ExampleOptions {
  /** The code host's address. Default: as recorded. */
  readonly url?: string | undefined
  readonly command: Command
}

/**
 * Creates an unsigned delivery of these bytes, with a new id unless `keepId`. `added` names the members for the
 * sender's event and id that the body lacked.
 * @throws RelayError `usage` if the event is neither given nor in the body, the body has another one, or its scheme has
 * no location for it
 */
export function deliveryOf(
  { name: source, schemeText: text }: Sent,
  given: string | undefined,
  body: Uint8Array,
  { keepId = false } = {},
): { readonly recorded: RecordedDelivery; readonly added: readonly string[] } {
  const scheme = schemeOf(text)
  const type = contentTypeOf(body, scheme)
  const lines = indexHeaders([['content-type', type]])
  const payload = parsePayload(lines, body)
  const textAt = (places: readonly ValueLocation[]): string | undefined =>
    places.map((place) => nameText(valueAt(place, lines, payload))).find((value) => typeof value === 'string')
  const [place] = scheme.event
  // Without its slash, as intake names a slash command.
  const known = textAt(scheme.event)?.replace(/^\//, '')
  // Event and action together, in the form of the journal: `Merge Request Hook.open`.
  const action = textAt(scheme.action)
  const wanted =
    action !== undefined && given?.endsWith(`.${action}`)
      ? given.slice(0, -action.length - 1)
      : given?.replace(/^\//, '')
  const event = wanted ?? known ?? (place === undefined ? 'webhook' : undefined)
  if (event === undefined) throw new RelayError('usage', 'The body names no event. Give it with --event')
  if (place === undefined && wanted !== undefined)
    throw new RelayError('usage', `The scheme ${text} has no place for an event: omit ${wanted}`)
  const isOfBody = place !== undefined && isInBody(place)
  if (isOfBody && known !== undefined && known !== event)
    throw new RelayError('usage', `--event is ${event}, but the body is of ${known}: change one of them`)
  const kind = { form: isForm(lines), style: scheme.style(event) }
  const id = randomUUID()
  const [idPlace] = scheme.id
  const lacksId = isObject(payload) && !kind.form && !keepId && textAt(scheme.id) === undefined
  const added: JsonMember[] = [
    ...(isOfBody && known === undefined ? [[place.slice(2).split('.'), event] as const] : []),
    ...(lacksId && idPlace !== undefined && isInBody(idPlace)
      ? [[idPlace.slice(2).split('.'), id] as const]
      : []),
  ]
  const recorded = {
    provider: source,
    scheme: text,
    event: action === undefined || scheme.events ? event : `${event}.${action}`,
    deliveryId: id,
    headers: Object.entries({ ...scheme.headers(event, id), 'Content-Type': type }),
    body: setMembers(body, added, kind),
  }
  return {
    recorded: keepId ? recorded : withFreshId(recorded),
    added: added.map(([path]) => path.join('.')),
  }
}

function contentTypeOf(body: Uint8Array, { content }: WebhookScheme): string {
  try {
    parseJson(body)
    return 'application/json'
  } catch {
    const isFields = /^[^\s=&]+=[^\s]*$/.test(Buffer.from(body).toString().trimEnd())
    return isFields
      ? 'application/x-www-form-urlencoded'
      : content === 'any'
        ? 'text/plain'
        : 'application/json'
  }
}

function folderOf(provider: string): string {
  return provider === 'gitea' ? 'gitea' : 'github'
}

/** Members that existed before the event, whose dates do not change. */
const LASTING =
  /^(?:repo|repository|forkee|organization|sender|owner|user|pusher|app|installation|hook|milestone)$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/

function editsOf(payload: unknown, now: number): Edit[] {
  const value = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const { repository } = fieldsOf(payload)
  const rename = repository ? [{ path: ['repository', 'full_name'], value: REPO }] : []
  return [...rename, ...instantsIn(payload).map((path) => ({ path, value, only: true }))]
}

/** Paths of the dates that belong to the event. */
function instantsIn(value: unknown, path: Edit['path'] = []): Edit['path'][] {
  if (typeof value === 'string') return INSTANT.test(value) ? [path] : []
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap((each, i) => instantsIn(each, [...path, i]))
  return Object.entries(value).flatMap(([key, each]) =>
    LASTING.test(key) ? [] : instantsIn(each, [...path, key]),
  )
}
