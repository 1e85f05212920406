import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { printable } from '../base/text.js'
import { memberOf } from '../json/parse.js'
import type { CodeHost, IssueRef } from '../codehost/host.js'
import { OWNER_PATH, REPO_NAME as NAME } from '../codehost/repo.js'

export interface ActionTarget extends IssueRef {
  /** Comment of the address. `review` is one on a line of the diff. */
  readonly comment?: { readonly kind: 'issue' | 'review'; readonly id: number } | undefined
  /** Address of the code host, without `https://` if the target had none. Undefined for `owner/repo#12`. */
  readonly host?: string | undefined
  /** Sign before the number where pull requests have numbers of their own. Default: `#`. */
  readonly mark?: '!' | undefined
  /** Path of the repository as GitLab's pages and notes name it, which may begin with the code host's own. */
  readonly path?: string
  /** The same text, if its first name is not the host but a group: `group/demo/-/issues/3`. */
  readonly bare?: ActionTarget
}

const NUMBER = '[1-9]\\d{0,14}'
const SHORT = new RegExp(
  `^(?<owner>${OWNER_PATH})/(?<repo>${NAME})(?<mark>[#!])(?<number>${NUMBER})(?:#note_(?<note>${NUMBER}))?$`,
)
/**
 * Path of an issue or pull request, also of a page below it: GitHub's and Gitea's `/files`, `/files/abc..def` and
 * `/commits/abc`, GitHub's `/changes`, `/checks` and `/conflicts`, and the texts `.diff` and `.patch`. A Gitea, or a proxy
 * before a server, can have a path.
 */
const PATH = new RegExp(
  `^(?<base>.*)/(?<owner>${NAME})/(?<repo>${NAME})/(?<page>issues|pulls?)/(?<number>${NUMBER})` +
    '(?:\\.diff|\\.patch|(?:/(?:files|changes|commits|checks|conflicts)(?:/[\\w.~^-]+)*)?/*)$',
)
/**
 * Path of GitLab's pages, also of one below: `/diffs`, `/commits`, `/pipelines`. Work items and incidents are issues. The server
 * can have a path.
 */
const GROUPED_PATH = new RegExp(
  `^/(?<owner>${OWNER_PATH})/(?<repo>${NAME})/-/(?<page>issues(?:/incident)?|work_items|merge_requests)/(?<number>${NUMBER})` +
    '(?:\\.diff|\\.patch|(?:/(?:diffs|commits|pipelines|reports|conflicts|edit|designs|timeline)(?:/[\\w.~^-]+)*)?/*)$',
)
/** The first name of an address without a scheme that can be that of a group: a host has a dot or a port. */
const FIRST_NAME = /^[\w-]+\//
const NOTE_ANCHOR = new RegExp(`^#note_(?<id>${NUMBER})$`)
/** Anchor of a comment. */
const COMMENT_ANCHOR = new RegExp(`^#(?:(?<issue>issuecomment-)|(?:discussion_r|r))(?<id>${NUMBER})$`)
/** Beginning of such an anchor. One that was not copied whole must not lead to the issue itself. */
const CUT_ANCHOR = /^#(?:issuecomment-|discussion_r|r\d)/

/** Parses `owner/repo#12`, or a web address, whose host {@link requireOwnHost} checks. @throws RelayError `usage` with a valid example */
export function parseTarget(text: string): ActionTarget {
  const target = readTarget(text)
  if (target) return target
  throw noTarget(text)
}

function noTarget(text: string): RelayError {
  return new RelayError(
    'usage',
    `${JSON.stringify(text)} is not an issue, pull request or comment. Give for example octo/demo#12, or its web address`,
  )
}

function readTarget(text: string): ActionTarget | undefined {
  const short = SHORT.exec(text)?.groups
  if (short) return readShort(short)
  // Browsers copy some addresses without a scheme, and people write them so.
  const isWhole = /^[a-z][\w+.-]*:\/\//i.test(text)
  const url = parseUrl(isWhole ? text : `https://${text}`)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined
  if (!COMMENT_ANCHOR.test(url.hash)) {
    const address = readGrouped(url)
    const place = { host: isWhole ? url.origin : url.host }
    const bare = !isWhole && FIRST_NAME.test(text) ? readGrouped(new URL(`/${text}`, url)) : undefined
    if (address) return { ...address, ...place, ...(bare && { bare }) }
    if (bare) return bare
    if (url.hash.startsWith('#note_')) return undefined
  }
  const groups = PATH.exec(url.pathname)?.groups
  if (!groups) return undefined
  const anchor = COMMENT_ANCHOR.exec(url.hash)?.groups
  if (!anchor && CUT_ANCHOR.test(url.hash)) return undefined
  const { issue, id } = anchor ?? {}
  return {
    ...named(groups),
    kind: groups['page'] === 'issues' ? 'issue' : 'pull',
    ...(id !== undefined && { comment: { kind: issue === undefined ? 'review' : 'issue', id: Number(id) } }),
    host: `${isWhole ? url.origin : url.host}${groups['base'] ?? ''}`,
  }
}

function readShort({ note, ...groups }: Partial<Record<string, string>>): ActionTarget {
  const target = named(groups)
  if (note === undefined) return target
  const comment = { kind: 'issue', id: Number(note) } as const
  return { ...target, comment, path: `${target.owner}/${target.repo}` }
}

/** Reads an address of GitLab's pages, without its host. */
function readGrouped(url: URL): ActionTarget | undefined {
  const groups = GROUPED_PATH.exec(url.pathname)?.groups
  const note = NOTE_ANCHOR.exec(url.hash)?.groups
  if (!groups || (!note && url.hash.startsWith('#note_'))) return undefined
  const isPull = groups['page'] === 'merge_requests'
  return {
    ...named({ ...groups, mark: isPull ? '!' : '#' }),
    kind: isPull ? 'pull' : 'issue',
    ...(note && { comment: { kind: 'issue', id: Number(note['id']) } }),
    path: `${groups['owner']}/${groups['repo']}`,
  }
}

function named({ owner = '', repo = '', number, mark }: Partial<Record<string, string>>): ActionTarget {
  return { owner, repo, number: Number(number), ...(mark === '!' && { mark, kind: 'pull' }) }
}

/**
 * The target at the code host of the profile. @throws RelayError `usage` for an address elsewhere, and for groups where the
 * code host has none
 */
export function targetAt(
  target: ActionTarget,
  { url, nestedOwners }: Pick<CodeHost, 'url' | 'nestedOwners'>,
): ActionTarget {
  const { bare, host } = target
  const meant = bare && nestedOwners && host !== new URL(url).host ? bare : target
  const { path: _, bare: __, ...resolved } = nestedOwners ? withoutBase(meant, url) : withoutGroups(meant)
  requireOwnHost(resolved, url)
  // The pages of groups themselves are below `/groups/`.
  const isOfGroup = target.path !== undefined && resolved.owner.split('/')[0] === 'groups'
  if (nestedOwners && isOfGroup) throw noTarget(formatTarget(resolved))
  if (!nestedOwners && resolved.owner.includes('/')) throw noTarget(formatTarget(resolved))
  return resolved
}

/** At another code host, the dash of `/octo/-/issues/1` is a repository. */
function withoutGroups(target: ActionTarget): ActionTarget {
  const { path, mark, ...others } = target
  if (path === undefined) return target
  if (mark !== undefined || others.host === undefined) throw noTarget(formatTarget(target))
  const names = path.split('/')
  const host = [others.host, ...names.slice(0, -1)].join('/')
  return { ...others, owner: names.at(-1) ?? '', repo: '-', host }
}

/** Takes the code host's own path from that of the repository. */
function withoutBase(target: ActionTarget, url: string): ActionTarget {
  const { path, host } = target
  const base = new URL(url).pathname.replaceAll(/^\/+|\/+$/g, '')
  if (path === undefined || base === '' || !path.startsWith(`${base}/`)) return target
  const names = path.slice(base.length + 1).split('/')
  const own = { owner: names.slice(0, -1).join('/'), repo: names.at(-1) ?? '' }
  return { ...target, ...own, ...(host !== undefined && { host: `${host}/${base}` }) }
}

/** Checks the code host of a web address. @throws RelayError `usage` if it is not that of `providerUrl`, naming both */
export function requireOwnHost({ host }: ActionTarget, providerUrl: string): void {
  if (host === undefined || isAddressOf(host, providerUrl)) return
  throw new RelayError(
    'usage',
    `The address is on ${host}, but this profile uses ${providerUrl}. Give an address there, or owner/repo#12`,
  )
}

/** True if `host`, with or without `https://` and `www.`, is the code host's address. */
function isAddressOf(host: string, providerUrl: string): boolean {
  const own = [providerUrl, providerUrl.replace(/^https?:\/\//, '')]
  return own.some((each) => each === host || each === host.replace(/^(https?:\/\/)?www\./, '$1'))
}

/** The field of the API's body that has the target's number. */
export function numberField(
  { number, kind }: ActionTarget,
  { separateNumbers }: Pick<CodeHost, 'separateNumbers'>,
): { readonly issueNumber: number } | { readonly pullNumber: number } {
  return separateNumbers && kind === 'pull' ? { pullNumber: number } : { issueNumber: number }
}

/** Formats `owner/repo#12`, or `group/repo!12`. */
export function formatTarget({ owner, repo, number, mark }: ActionTarget): string {
  return `${owner}/${repo}${mark ?? '#'}${number}`
}

// Target of a delivery

/** A delivery that names the target of an action. */
export interface NamedDelivery {
  /** Name for messages: `#7 (issues)`. */
  readonly name: string
  readonly event: string
  /** Parsed JSON of its body. */
  readonly payload: unknown
}

/** Places of the address of what an event of GitLab is about: an issue, a merge request, a note on one, a pipeline of one. */
const OWN_ADDRESSES = ['object_attributes.url', 'merge_request.url', 'issue.url']

/** Events about a commit. GitHub lists the pull requests that have it as head, also those of other repositories. */
const LISTING_EVENTS = ['check_suite', 'check_run', 'workflow_run'] as const

/**
 * Finds the issue or pull request of a delivery: the one that its payload names, with the comment if it is about one,
 * or the only pull request of a check suite, a check run or a workflow run.
 * @throws RelayError `no_match` if it names none, or several
 */
export function targetOfDelivery(delivery: NamedDelivery): ActionTarget {
  const { payload } = delivery
  const address = textOf(payload, 'pull_request.html_url') ?? textOf(payload, 'issue.html_url')
  if (address !== undefined) return withComment(toTarget(address, delivery), delivery)
  const own = OWN_ADDRESSES.map((place) => textOf(payload, place)).find((text) => readTarget(text ?? ''))
  if (own !== undefined) return toTarget(own, delivery)
  const pulls = listedPulls(delivery)?.map((pull) => toTarget(pull, delivery))
  const [first, ...others] = pulls ?? []
  if (first && others.length === 0) return first
  const which = !pulls
    ? 'is about no issue or pull request. Give the target, for example octo/demo#12'
    : first
      ? `names several pull requests: ${pulls.map(formatTarget).join(', ')}. Give one of them`
      : 'names no pull request. GitHub names none if its branch is in a fork. Give the target, for example octo/demo#12'
  throw new RelayError('no_match', `${upper(delivery.name)} ${which}`)
}

/** Returns the addresses of the pull requests that the event lists. Undefined for an event without such a list. */
function listedPulls({ event, payload }: NamedDelivery): string[] | undefined {
  const kind = LISTING_EVENTS.find((known) => known === event)
  const list = kind && memberOf(payload, `${kind}.pull_requests`)
  const [id, address] = [memberOf(payload, 'repository.id'), textOf(payload, 'repository.html_url')]
  if (!Array.isArray(list) || id === undefined || address === undefined) return undefined
  const own = list.filter((pull) => memberOf(pull, 'base.repo.id') === id)
  return [...new Set(own.map((pull) => `${address}/pull/${String(memberOf(pull, 'number'))}`))]
}

/** Returns the text at a path of a payload. Undefined if there is none. */
function textOf(payload: unknown, path: string): string | undefined {
  const value = memberOf(payload, path)
  return typeof value === 'string' ? value : undefined
}

function toTarget(address: string, { name }: NamedDelivery): ActionTarget {
  const target = readTarget(address)
  if (target) return target
  throw new RelayError('no_match', `${upper(name)} has no address of an issue or pull request`)
}

/** The comment's own address tells its kind. A comment on something else is ignored. */
function withComment(target: ActionTarget, { payload }: NamedDelivery): ActionTarget {
  const address = textOf(payload, 'comment.html_url')
  const named = address === undefined ? undefined : readTarget(address)
  const isOnTarget = named && named.host === target.host && formatTarget(named) === formatTarget(target)
  return isOnTarget ? { ...target, comment: named.comment } : target
}

function upper(name: string): string {
  return printable(name.charAt(0).toUpperCase() + name.slice(1))
}
