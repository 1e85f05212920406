import { parseUrl } from '../../base/parse-url.js'
import { RelayError } from '../../base/errors.js'

/** The issue, pull request or comment of an action. */
export interface Target {
  readonly owner: string
  readonly repo: string
  readonly number: number
  /** As the address says; undefined for `owner/repo#12`. */
  readonly kind?: 'issue' | 'pull' | undefined
  /** The comment that the address points at; `review`: one on a line of the diff. */
  readonly comment?: { readonly kind: 'issue' | 'review'; readonly id: number } | undefined
  /** The address of the code host; undefined for `owner/repo#12`. */
  readonly host?: string | undefined
}

const NAME = '(?!\\.{1,2}[/#])[A-Za-z0-9._-]{1,100}'
const SHORT = new RegExp(`^(?<owner>${NAME})/(?<repo>${NAME})#(?<number>\\d+)$`)
/** GitHub has pages below a pull request, with other anchors. A Gitea can have a path. */
const PATH = new RegExp(
  `^(?<base>.*)/(?<owner>${NAME})/(?<repo>${NAME})/(?<page>issues|pulls?)/(?<number>\\d+)(?:/(?:files|changes|commits|checks))?/*$`,
)
const COMMENT = /^#(?:(?<issue>issuecomment-)|(?<review>discussion_r|r))(?<id>\d+)$/

/**
 * Parses `owner/repo#12`, or the web address of an issue, a pull request, or a comment on one. {@link checkHost} checks its
 * host, once the code host is known.
 * @throws RelayError `usage` with a valid example.
 */
export function parseTarget(text: string): Target {
  const short = SHORT.exec(text)?.groups
  const url = short ? undefined : parseUrl(text)
  const target = short ? targetOf(short) : url && parseAddress(url)
  if (!target) throw notATarget(text)
  return target
}

/**
 * @throws RelayError `usage` when the target is a web address of another code host than `providerUrl`'s, naming both.
 */
export function checkHost({ host }: Target, providerUrl: string): void {
  if (host === undefined || host === providerUrl) return
  throw new RelayError(
    'usage',
    `The address is on ${host}, but this profile uses ${providerUrl}. Give an address there, or owner/repo#12`,
  )
}

/** `owner/repo#12`. */
export function formatTarget({ owner, repo, number }: Target): string {
  return `${owner}/${repo}#${number}`
}

function parseAddress(url: URL): Target | undefined {
  const groups = PATH.exec(url.pathname)?.groups
  if (!groups || !/^https?:$/.test(url.protocol) || url.username || url.password) return undefined
  const target = targetOf(groups)
  const kind = groups['page'] === 'issues' ? 'issue' : 'pull'
  const host = `${url.origin}${groups['base'] ?? ''}`
  // GitHub's anchor for the text of the issue itself.
  if (url.hash === '' || /^#issue-\d+$/.test(url.hash)) return target && { ...target, kind, host }
  const comment = commentOf(url.hash)
  return target && comment && { ...target, kind, comment, host }
}

function targetOf({ owner = '', repo = '', number = '' }: Record<string, string>): Target | undefined {
  return isNumber(number) ? { owner, repo, number: Number(number) } : undefined
}

function commentOf(hash: string): Target['comment'] {
  const { issue, id = '' } = COMMENT.exec(hash)?.groups ?? {}
  return isNumber(id) ? { kind: issue ? 'issue' : 'review', id: Number(id) } : undefined
}

function isNumber(digits: string): boolean {
  return /^[1-9]\d*$/.test(digits) && Number.isSafeInteger(Number(digits))
}

function notATarget(text: string): RelayError {
  return new RelayError(
    'usage',
    `${JSON.stringify(text)} is not an issue, pull request or comment. Give for example octo/demo#12, or its web address`,
  )
}
