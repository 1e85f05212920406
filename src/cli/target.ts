import { z } from 'zod'
import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { printable } from '../base/text.js'
import type { Repo, IssueRef } from '../codehost/host.js'

const NAME = '(?!\\.{1,2}(?:[/#]|$))[A-Za-z0-9._-]{1,100}'
const REPO = new RegExp(`^(?<owner>${NAME})/(?<repo>${NAME})$`)

/** Parses `owner/repo`. @throws RelayError `usage` with a valid example. */
export function parseRepo(text: string): Repo {
  const { owner, repo } = REPO.exec(text)?.groups ?? {}
  if (owner !== undefined && repo !== undefined) return { owner, repo }
  throw new RelayError('usage', `${JSON.stringify(text)} is not a repository. Give for example octo/demo`)
}

/** Formats `owner/repo`. */
export function formatRepo({ owner, repo }: Repo): string {
  return `${owner}/${repo}`
}

export interface ActionTarget extends IssueRef {
  /** Comment of the address. `review` is one on a line of the diff. */
  readonly comment?: { readonly kind: 'issue' | 'review'; readonly id: number } | undefined
  /** Address of the code host. Undefined for `owner/repo#12`. */
  readonly host?: string | undefined
}

const NUMBER = '[1-9]\\d{0,14}'
const SHORT = new RegExp(`^(?<owner>${NAME})/(?<repo>${NAME})#(?<number>${NUMBER})$`)
/**
 * Path of an issue or pull request. GitHub has pages below a pull request, with other anchors. A Gitea can have a path.
 */
const PATH = new RegExp(
  `^(?<base>.*)/(?<owner>${NAME})/(?<repo>${NAME})/(?<page>issues|pulls?)/(?<number>${NUMBER})(?:/(?:files|changes|commits|checks))?/*$`,
)
/** Anchor of a comment. `#issue-5` is GitHub's anchor for the text of the issue itself. */
const ANCHOR = new RegExp(
  `^(?:|#issue-\\d+|#(?:(?<issue>issuecomment-)|(?:discussion_r|r))(?<id>${NUMBER}))$`,
)

/** Parses `owner/repo#12`, or a web address, whose host {@link requireOwnHost} checks. @throws RelayError `usage` with a valid example */
export function parseTarget(text: string): ActionTarget {
  const target = readTarget(text)
  if (target) return target
  throw new RelayError(
    'usage',
    `${JSON.stringify(text)} is not an issue, pull request or comment. Give for example octo/demo#12, or its web address`,
  )
}

function readTarget(text: string): ActionTarget | undefined {
  const short = SHORT.exec(text)?.groups
  if (short) return named(short)
  const url = parseUrl(text)
  const groups = PATH.exec(url?.pathname ?? '')?.groups
  const anchor = ANCHOR.exec(url?.hash ?? '')
  if (!url || !groups || !anchor || !/^https?:$/.test(url.protocol) || url.username || url.password)
    return undefined
  const { issue, id } = anchor.groups ?? {}
  return {
    ...named(groups),
    kind: groups['page'] === 'issues' ? 'issue' : 'pull',
    ...(id !== undefined && { comment: { kind: issue === undefined ? 'review' : 'issue', id: Number(id) } }),
    host: `${url.origin}${groups['base'] ?? ''}`,
  }
}

function named({ owner = '', repo = '', number }: Partial<Record<string, string>>): ActionTarget {
  return { owner, repo, number: Number(number) }
}

/** Checks the code host of a web address. @throws RelayError `usage` if it is not that of `providerUrl`, naming both */
export function requireOwnHost({ host }: ActionTarget, providerUrl: string): void {
  if (host === undefined || host === providerUrl) return
  throw new RelayError(
    'usage',
    `The address is on ${host}, but this profile uses ${providerUrl}. Give an address there, or owner/repo#12`,
  )
}

/** Formats `owner/repo#12`. */
export function formatTarget({ owner, repo, number }: ActionTarget): string {
  return `${owner}/${repo}#${number}`
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

const page = z.object({ html_url: z.string() })
const repository = z.object({ id: z.int(), html_url: z.string() })
const ofIssue = z.object({ pull_request: page.optional(), issue: page.optional() })
const ofComment = z.object({ comment: page })
/** Events about a commit. GitHub lists the pull requests of which it is the head, also those of other repositories. */
const listing = z.object({
  pull_requests: z.array(z.object({ number: z.int(), base: z.object({ repo: z.object({ id: z.int() }) }) })),
})
const ofCommit = z.object({
  repository,
  check_suite: listing.optional(),
  check_run: listing.optional(),
  workflow_run: listing.optional(),
})
const LISTING_EVENTS = ['check_suite', 'check_run', 'workflow_run'] as const

/**
 * Finds the issue or pull request of a delivery: the one that its payload names, with the comment if it is about one,
 * or the only pull request of a check suite, a check run or a workflow run.
 * @throws RelayError `no_match` if it names none, or several
 */
export function targetOfDelivery(delivery: NamedDelivery): ActionTarget {
  const { pull_request, issue } = ofIssue.safeParse(delivery.payload).data ?? {}
  const address = (pull_request ?? issue)?.html_url
  if (address !== undefined) return withComment(toTarget(address, delivery), delivery)
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
  const { data } = ofCommit.safeParse(payload)
  const list = kind && data?.[kind]
  if (!list) return undefined
  const { id, html_url } = data.repository
  const own = list.pull_requests.filter(({ base }) => base.repo.id === id)
  return [...new Set(own.map(({ number }) => `${html_url}/pull/${number}`))]
}

function toTarget(address: string, { name }: NamedDelivery): ActionTarget {
  const target = readTarget(address)
  if (target) return target
  throw new RelayError('no_match', `${upper(name)} has no address of an issue or pull request`)
}

/** The comment's own address tells its kind. A comment on something else is ignored. */
function withComment(target: ActionTarget, { payload }: NamedDelivery): ActionTarget {
  const address = ofComment.safeParse(payload).data?.comment.html_url
  const named = address === undefined ? undefined : readTarget(address)
  const isOnTarget = named && named.host === target.host && formatTarget(named) === formatTarget(target)
  return isOnTarget ? { ...target, comment: named.comment } : target
}

function upper(name: string): string {
  return printable(name.charAt(0).toUpperCase() + name.slice(1))
}
