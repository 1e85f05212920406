// Merging at GitHub and Gitea: what a refusal means, and when another attempt can succeed.
import { z } from 'zod/mini'
import { RelayError } from '../base/errors.js'
import { commitSchema, pullPath } from './github-like.js'
import type { IssueRef, MergeWatch } from './host.js'
import { Refusal } from './refusal.js'
import type { RestClient } from './rest.js'

/** Most times that a merge is sent, since each makes the code host merge the branches on trial. */
const MAX_WRITES = 5
/** Longest delay between two looks at a pull request. */
const MAX_DELAY_MS = 4000

/**
 * Time after the first refusal in which Gitea's "try again later" counts as a check if nothing was pushed lately. Looking
 * starts a check that Gitea has put off, which takes a moment. Milliseconds.
 */
const SETTLED_MS = 1000

const branch = z.object({ sha: commitSchema, repo: z.nullish(z.object({ updated_at: z.string() })) })

/**
 * Fields of a pull request that show why it was not merged. Gitea has no `mergeable_state`, old versions no `draft`.
 */
const pullState = z.object({
  state: z.string(),
  merged: z.boolean(),
  draft: z.optional(z.boolean()),
  /** Null while GitHub is checking. At Gitea false for a draft, for a conflict, and while it is checking. */
  mergeable: z.nullish(z.boolean()),
  mergeable_state: z.optional(z.string()),
  head: z.optional(branch),
  base: z.optional(z.pick(branch, { repo: true })),
  created_at: z.optional(z.string()),
})
type PullState = z.infer<typeof pullState> & {
  /** Milliseconds since something happened that makes Gitea check it again: its creation, or a push. 0 if not known. */
  readonly quiet: number
}

/**
 * Sends a merge, and sends it again with the same head if it was refused only for the moment: the base branch moved, or
 * the code host has not finished checking whether it can be merged. Without `sha`, the head is read before the first write, and
 * every write names it. Where it cannot be read, the merge is sent once, without.
 * `send` throws {@link Refusal} only if nothing was merged, or a gateway may have answered (5xx).
 * @throws RelayError of `send`; `conflict` or `forbidden` with the reason that the pull request shows, if it can be
 * read; `cancelled`
 * @see docs.github.com/rest/pulls/pulls ("Get a pull request", "Merge a pull request"; the values of `mergeable_state`
 * are those of GraphQL's MergeStateStatus); Gitea's routers/api/v1/repo/pull.go (MergePullRequest), services/pull/check.go
 * (CheckPullMergeable) and modules/structs/pull.go
 */
export async function mergePatiently<Result>(
  rest: RestClient,
  pull: IssueRef,
  { sha, onRetry }: { readonly sha: string | undefined } & MergeWatch,
  send: (sha: string | undefined, given: { readonly wasJustRead: boolean }) => Promise<Result>,
): Promise<Result> {
  const { mergeDelay, mergeTime } = rest.limits
  const reported = new Set<string>()
  const head = sha ?? (await headNow(rest, pull))
  let began: number | undefined
  let delay = mergeDelay
  for (let writes = 1; ; writes++) {
    let error: unknown
    try {
      return await send(head, { wasJustRead: sha === undefined && writes === 1 })
    } catch (thrown) {
      error = thrown
    }
    for (let before: Retry | undefined; !before?.isReady;) {
      const found = await stateAfter(rest, pull, error)
      if (!found || !(error instanceof Refusal)) throw error
      const isPinned = head !== undefined && (sha === undefined || began !== undefined)
      if (isPinned && !found.merged && found.head && found.head.sha !== head)
        throw notMerged('conflict', `its head is now another commit, ${found.head.sha}`, error)
      const retry = retryOf(rest.label, error, found, before)
      if (!retry || head === undefined || found.head?.sha !== head) throw reasonOf(rest.label, error, found)
      const now = performance.now()
      began ??= now
      const end = began + (retry.isUnclear ? clearWithin(found.quiet, mergeTime) : mergeTime)
      if (now >= end || writes === MAX_WRITES)
        throw notMerged('conflict', stillOf(retry, found, mergeTime) + quoted(rest.label, error), error)
      if (!reported.has(retry.why))
        onRetry?.(`${retry.why}; trying again for up to ${Math.round((end - began) / 1000)} s`)
      reported.add(retry.why)
      await rest.wait(Math.min(delay, end - now))
      delay = Math.min(delay * 2, MAX_DELAY_MS)
      before = retry
    }
  }
}

/** Reads the head that a merge is of. Undefined if it cannot be read. @throws RelayError `cancelled` */
async function headNow(rest: RestClient, pull: IssueRef): Promise<string | undefined> {
  return (await stateOf(rest, pull))?.head?.sha
}

function stillOf({ still, isUnclear }: Retry, { quiet }: PullState, mergeTime: number): string {
  return isUnclear && quiet >= mergeTime ? DIRTY : still
}

/**
 * Milliseconds after the first refusal in which Gitea's check must have come to an end. Gitea says with the same words that it is
 * checking and that it conflicts. A check is expected to end within `mergeTime` of what caused it.
 */
function clearWithin(quiet: number, mergeTime: number): number {
  return Math.min(Math.max(mergeTime - quiet, SETTLED_MS), mergeTime)
}

/** Statuses after which the pull request is read: code hosts answer 404, 405 and 409 for many reasons. */
const UNCLEAR: ReadonlySet<number> = new Set([404, 405, 409])

/** Reads a pull request after a refusal. Undefined if it need not be read, or cannot be. */
async function stateAfter(rest: RestClient, pull: IssueRef, error: unknown): Promise<PullState | undefined> {
  if (!(error instanceof Refusal)) return undefined
  const { providerStatus: status } = error
  if (!UNCLEAR.has(status) && status < 500) return undefined
  return stateOf(rest, pull)
}

async function stateOf(rest: RestClient, pull: IssueRef): Promise<PullState | undefined> {
  try {
    const { value, header } = await rest.call('GET', pullPath(pull), { answer: pullState })
    return { ...value, quiet: quietFor(value, header('date')) }
  } catch (error) {
    if (error instanceof RelayError && error.kind === 'cancelled') throw error
    return undefined
  }
}

/** Both times are the code host's. A push sets `updated_at` of its repository (Gitea's services/repository/push.go). */
function quietFor({ created_at, head, base }: z.infer<typeof pullState>, date: string | undefined): number {
  const times = [created_at, head?.repo?.updated_at, base?.repo?.updated_at].map((time) =>
    Date.parse(time ?? ''),
  )
  const quiet = Date.parse(date ?? '') - Math.max(...times)
  return quiet > 0 ? quiet : 0
}

/** Reason to try again. */
interface Retry {
  readonly why: string
  /** Reason of the refusal once the time is over. */
  readonly still: string
  /** True if the merge can be sent again after the delay; false if the pull request is read again first. */
  readonly isReady: boolean
  /** True if it may be no reason, but a conflict. */
  readonly isUnclear?: boolean
}

/** Messages of GitHub (405) and Gitea (409) when another push came first. */
const BASE_MOVED = /^(?:Base branch was modified|merge push out of date)/i
/** Message of GitHub, with 405, while another request merges the same pull request. */
const IN_PROGRESS = /^Merge already in progress/i
/** Message of Gitea, with 405, for a conflict and while it is checking for one. */
const NOT_MERGEABLE_NOW = /^Please try again later/i

/** Decides if a refused merge can succeed a moment later. `before` is the decision of the last look. */
function retryOf(
  label: string,
  { upstreamMessage: message, providerStatus }: Refusal,
  { state, merged, draft, mergeable, mergeable_state: shown }: PullState,
  before: Retry | undefined,
): Retry | undefined {
  if (merged || state === 'closed' || draft || ![405, 409].includes(providerStatus)) return undefined
  if (before && mergeable === true) return { ...before, isReady: true }
  const why = BASE_MOVED.test(message) ? 'its base branch has just changed' : undefined
  const busy = 'another merge of it is in progress'
  if (IN_PROGRESS.test(message)) return { why: busy, still: busy, isReady: false }
  if (shown === undefined) {
    if (why === undefined && !NOT_MERGEABLE_NOW.test(message)) return undefined
    const checking = `${label} is checking whether it can be merged, or it conflicts`
    return {
      why: why ?? checking,
      still: mergeable === true ? BASE_MOVES : CONFLICTS,
      isReady: mergeable === true,
      isUnclear: why === undefined && mergeable !== true,
    }
  }
  if (providerStatus === 405 && (mergeable === null || shown === 'unknown')) {
    const checking = `${label} is checking whether it can be merged`
    return { why: why ?? checking, still: CHECKING, isReady: false }
  }
  return why !== undefined && shown !== 'dirty' ? { why, still: BASE_MOVES, isReady: true } : undefined
}

/**
 * Gitea's messages, with 405, for reasons that its pull request does not show. "not allowed to merge [reason: …]" is
 * about approvals or checks.
 */
const MAY_NOT_MERGE = /^User not allowed to merge/i
const WORK_IN_PROGRESS = /^Work in progress/i

/** Error with the reason that the pull request shows, or the refusal itself if it shows none. */
function reasonOf(label: string, error: Refusal, found: PullState): RelayError {
  const { upstreamMessage: message, providerStatus, message: text } = error
  if (providerStatus >= 500)
    return found.merged
      ? new Refusal('provider_failed', `${text}. It is merged now`, {
          providerStatus,
          upstreamMessage: message,
        })
      : error
  if (found.merged) return notMerged('conflict', 'it is already merged', error)
  if (found.state === 'closed') return notMerged('conflict', 'it is closed', error)
  if (providerStatus === 409)
    return found.mergeable_state === 'dirty'
      ? notMerged('conflict', DIRTY + quoted(label, error), error)
      : error
  if (providerStatus === 404 || MAY_NOT_MERGE.test(message))
    return notMerged('forbidden', `this account or its token may not merge it${quoted(label, error)}`, error)
  const isDraft = found.draft || WORK_IN_PROGRESS.test(message)
  const shown = MERGE_STATE_REASONS.get(isDraft ? 'draft' : (found.mergeable_state ?? ''))
  const why = shown ?? (found.mergeable === false ? CONFLICTS : undefined)
  return why === undefined ? error : notMerged('conflict', why + quoted(label, error), error)
}

function notMerged(kind: 'conflict' | 'forbidden', why: string, { providerStatus }: Refusal): Refusal {
  return new Refusal(kind, `Not merged: ${why}`, { providerStatus })
}

function quoted(label: string, { upstreamMessage: message }: Refusal): string {
  return message && ` (${label}: ${message})`
}

const DIRTY = 'it conflicts with its base branch'
const CONFLICTS = 'it conflicts with its base branch, or the code host is still checking that'
const CHECKING = 'the code host is still checking whether it can be merged; try again'
const BASE_MOVES = 'its base branch changes all the time; try again'
const MERGE_STATE_REASONS: ReadonlyMap<string, string> = new Map([
  ['dirty', DIRTY],
  ['behind', 'its branch must first be brought up to date with the base branch'],
  ['blocked', 'approvals or checks are missing'],
  ['draft', 'it is a draft'],
  ['unknown', CHECKING],
])
