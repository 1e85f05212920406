import { RelayError } from '../../base/errors.js'
import type { ErrorKind } from '../../base/errors.js'
import type * as host from '../host.js'
import { Refusal } from '../refusal.js'
import type { RestClient } from '../rest.js'
import { type MergeRequest, mergeRequest, mergeRequestPath } from './merge-request.js'

/** Most times that a merge is sent. */
const MAX_WRITES = 5
/** Longest delay between two reads of a merge request. */
const MAX_DELAY_MS = 4000

/**
 * Merges a merge request: PUT …/merge with its head. If GitLab refuses while it still checks the request, or while another
 * call merges it, relay sends the merge again with the same head.
 *
 * GitLab answers 401 to a user who may not merge (also with a valid token), 405 if the request cannot be merged now, 409 for
 * another head, and 422 (406 before 15.5) if the merge itself fails. The reason is in `detailed_merge_status`.
 * @see https://docs.gitlab.com/api/merge_requests/ ("Merge a merge request", "Merge status"), lib/api/merge_requests.rb
 */
export async function merge(
  rest: RestClient,
  pull: host.IssueRef,
  { method, title, message, sha, auto = false }: host.MergeOptions = {},
  { onRetry }: host.MergeWatch = {},
): Promise<host.MergeResult> {
  if (method === 'rebase')
    throw new RelayError(
      'unprocessable',
      'GitLab rebases a merge request apart from its merge, and its project decides how it merges. Merge with another method',
    )
  const look = async (): Promise<MergeRequest | undefined> => {
    const read = rest.call('GET', mergeRequestPath(pull), { answer: mergeRequest })
    return (await read.catch(unlessCancelled))?.value
  }
  const head = sha ?? (await look())?.sha ?? undefined
  const body = bodyOf({ method, title, message, sha: head, auto })
  const { mergeDelay, mergeTime } = rest.limits
  const said = new Set<string>()
  let end: number | undefined
  let delay = mergeDelay
  for (let writes = 1; ; writes++) {
    let error: Refusal
    try {
      const answer = await rest.call('PUT', `${mergeRequestPath(pull)}/merge`, { body, answer: mergeRequest })
      return resultOf(answer.value, auto)
    } catch (thrown) {
      if (!(thrown instanceof Refusal) || thrown.providerStatus === 200) throw thrown
      error = thrown
    }
    for (let isReady = false; !isReady;) {
      const found = await look()
      if (!found) throw error
      const stopped = auto ? stopOf(error, found) : undefined
      if (stopped !== undefined) throw notMerged('conflict', stopped, error)
      const why = waitsFor(error, found, head)
      if (why === undefined) throw reasonOf(rest.label, error, found, head)
      const now = performance.now()
      end ??= now + mergeTime
      if (now >= end || writes === MAX_WRITES) throw notMerged('conflict', `${why}; try again`, error)
      if (!said.has(why)) onRetry?.(`${why}; trying again for up to ${Math.ceil(mergeTime / 1000)} s`)
      said.add(why)
      await rest.wait(Math.min(delay, end - now))
      delay = Math.min(delay * 2, MAX_DELAY_MS)
      const next = await look()
      isReady = next !== undefined && !isBusy(next)
      if (isReady && next && next.detailed_merge_status !== 'mergeable')
        throw reasonOf(rest.label, error, next, head)
    }
  }
}

/**
 * The title and the message are for the commit that a squash makes, else for the merge commit. Versions before 17.11 only
 * know `merge_when_pipeline_succeeds`, and ignore unknown parameters.
 */
function bodyOf({ method, title, message, sha, auto }: host.MergeOptions): object {
  const text = [title, message].filter((part) => part !== undefined && part !== '').join('\n\n')
  const isSquash = method === 'squash'
  return {
    ...(sha !== undefined && { sha }),
    ...(method !== undefined && { squash: isSquash }),
    ...(text !== '' && { [isSquash ? 'squash_commit_message' : 'merge_commit_message']: text }),
    ...(auto && { auto_merge: true, merge_when_pipeline_succeeds: true }),
  }
}

/** A fast-forward makes no commit of its own. */
function resultOf(
  { state, merge_commit_sha: merged, squash_commit_sha: squashed, sha, merge_error: error }: MergeRequest,
  auto: boolean,
): host.MergeResult {
  const made = merged ?? squashed ?? sha
  if (state === 'merged' && made) return { merged: true, sha: made }
  if (auto && state === 'opened') return { merged: false, sha: null }
  throw new Refusal('conflict', `Not merged: GitLab says: ${error ?? `it is ${state}`}`, {
    providerStatus: 200,
  })
}

function unlessCancelled(error: unknown): undefined {
  if (error instanceof RelayError && error.kind === 'cancelled') throw error
}

/** Values of `detailed_merge_status` while GitLab finds out. */
const CHECKING: ReadonlySet<string> = new Set(['approvals_syncing', 'checking', 'preparing', 'unchecked'])

/** True while GitLab merges it, or finds out whether it can. */
function isBusy({ state, detailed_merge_status: status }: MergeRequest): boolean {
  return state === 'locked' || (state === 'opened' && CHECKING.has(status))
}

/**
 * Reason for which GitLab does not merge by itself, but would at once: `pipeline_allows_merge?` in lib/api/merge_requests.rb. Undefined
 * if there is none.
 */
function stopOf(
  { providerStatus }: Refusal,
  { state, detailed_merge_status: status, head_pipeline: pipeline }: MergeRequest,
): string | undefined {
  const isRefused = providerStatus === 405 && state === 'opened' && status === 'mergeable'
  return isRefused && pipeline && ENDED_BADLY.has(pipeline.status)
    ? `its pipeline has not succeeded (${pipeline.status}), and GitLab merges by itself only after one that has`
    : undefined
}

/** States of a pipeline that does not go on by itself (app/models/concerns/ci/has_status.rb). */
const ENDED_BADLY: ReadonlySet<string> = new Set(['failed', 'canceled', 'skipped', 'manual', 'scheduled'])

/**
 * Reason to try again a refused merge. Undefined if it cannot succeed a moment later. A request that is mergeable now was
 * still being checked when the merge was refused.
 */
function waitsFor(
  { providerStatus }: Refusal,
  found: MergeRequest,
  head: string | undefined,
): string | undefined {
  const { state, sha, detailed_merge_status: status } = found
  if (![405, 406, 422].includes(providerStatus) || head === undefined || sha !== head) return undefined
  if (state === 'locked') return 'another merge of it is in progress'
  return isBusy(found) || (providerStatus === 405 && state === 'opened' && status === 'mergeable')
    ? 'GitLab is checking whether it can be merged'
    : undefined
}

/** Error with the reason that the merge request shows, or the refusal itself if it shows none. */
function reasonOf(
  label: string,
  error: Refusal,
  { state, sha, detailed_merge_status: status, merge_error: failed }: MergeRequest,
  head: string | undefined,
): RelayError {
  const { message, providerStatus, upstreamMessage } = error
  if (providerStatus >= 500)
    return state === 'merged'
      ? new Refusal('provider_failed', `${message}. It is merged now`, { providerStatus, upstreamMessage })
      : error
  if (state === 'merged') return notMerged('conflict', 'it is already merged', error)
  if (state === 'closed') return notMerged('conflict', 'it is closed', error)
  if (providerStatus === 401)
    return notMerged('forbidden', 'this account or its token may not merge it', error)
  if (head !== undefined && sha && sha !== head)
    return notMerged('conflict', `its head is now another commit, ${sha}`, error)
  const shown = REASONS.get(status)
  if (shown !== undefined && [405, 406, 422].includes(providerStatus))
    return notMerged('conflict', shown, error)
  const words = [upstreamMessage, failed].filter(Boolean).join(': ')
  return [405, 406, 422].includes(providerStatus) && words !== ''
    ? notMerged('conflict', `${label} says: ${words}`, error)
    : error
}

function notMerged(kind: ErrorKind, why: string, { providerStatus }: Refusal): Refusal {
  return new Refusal(kind, `Not merged: ${why}`, { providerStatus })
}

/** https://docs.gitlab.com/api/merge_requests/, "Merge status" */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['blocked_status', 'another merge request blocks it'],
  ['merge_request_blocked', 'another merge request blocks it'],
  ['ci_must_pass', 'its pipeline must succeed first'],
  ['ci_still_running', 'its pipeline is still running'],
  ['commits_status', 'its source branch must exist, and have commits'],
  ['conflict', 'it conflicts with its base branch'],
  ['discussions_not_resolved', 'its discussions must be resolved first'],
  ['draft_status', 'it is a draft'],
  ['external_status_checks', 'external status checks must pass first'],
  ['status_checks_must_pass', 'external status checks must pass first'],
  ['jira_association_missing', 'its title or description must name an issue of Jira'],
  ['locked_lfs_files', 'it changes files that somebody has locked'],
  ['locked_paths', 'it changes files that somebody has locked'],
  ['merge_time', 'it may not be merged yet, by the time that was set for it'],
  ['need_rebase', 'its branch must first be brought up to date with the base branch'],
  ['not_approved', 'approvals are missing'],
  ['not_open', 'it is not open'],
  ['requested_changes', 'a reviewer has requested changes'],
  ['security_policy_pipeline_check', 'the pipelines of its security policies must succeed first'],
  ['security_policy_violations', 'a security policy does not allow it'],
  ['title_regex', 'its title is not as the project wants it'],
])
