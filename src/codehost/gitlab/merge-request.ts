import { z } from 'zod/mini'
import type * as host from '../host.js'
import { isNotFound, Refusal } from '../refusal.js'
import { apiPath, PAGE_SIZE, type RestClient } from '../rest.js'

export function mergeRequestPath({ owner, repo, number }: host.IssueRef): string {
  return apiPath`/projects/${`${owner}/${repo}`}/merge_requests/${number}`
}

const commit = z.string().check(z.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/))

/** https://docs.gitlab.com/api/merge_requests/, "Get single MR" */
export const mergeRequest = z.object({
  state: z.string(),
  /** Its head. Null if it has no commit. */
  sha: z.nullish(commit),
  merge_commit_sha: z.nullish(commit),
  squash_commit_sha: z.nullish(commit),
  detailed_merge_status: z._default(z.string(), ''),
  merge_error: z.nullish(z.string()),
  source_project_id: z.nullish(z.int()),
  target_project_id: z.int(),
  head_pipeline: z.nullish(
    z.object({ id: z.int(), sha: z.string(), status: z.string(), ref: z.nullish(z.string()) }),
  ),
})
export type MergeRequest = z.infer<typeof mergeRequest>

const status = z.object({
  id: z.int(),
  name: z.string(),
  status: z.string(),
  allow_failure: z._default(z.boolean(), false),
})
type Status = z.infer<typeof status>

/** States of a job, a status or a pipeline that is not finished (app/models/concerns/ci/has_status.rb). */
const PENDING: ReadonlySet<string> = new Set([
  'created',
  'waiting_for_resource',
  'waiting_for_callback',
  'preparing',
  'pending',
  'running',
  'scheduled',
  'manual',
  'canceling',
])
const SUCCESSFUL: ReadonlySet<string> = new Set(['success', 'skipped'])

function checkOf(name: string, says: string, mayFail: boolean): host.CommitCheck {
  // An optional manual job holds up no merge.
  const ended = SUCCESSFUL.has(says) || mayFail ? 'succeeded' : 'failed'
  return { name, state: PENDING.has(says) && !(mayFail && says === 'manual') ? 'pending' : ended, says }
}

/**
 * The pipeline of the head (its commit may be that of a merged result) and the statuses of the head: jobs, and reports of
 * other programs (https://docs.gitlab.com/api/commits/, "List commit statuses"). The newest of each name counts. In a
 * fork, some are in its own project, which the user may not be able to see.
 */
export async function checksOf(rest: RestClient, found: MergeRequest): Promise<host.HeadChecks> {
  const { sha, head_pipeline: pipeline, source_project_id: source, target_project_id: target } = found
  if (!sha) throw new Refusal('conflict', 'Not merged: it has no commit', { providerStatus: 200 })
  const statuses = async (project: number): Promise<readonly Status[]> =>
    rest.all(apiPath`/projects/${project}/repository/commits/${sha}/statuses`, z.array(status), {
      per_page: PAGE_SIZE,
    })
  const ofFork = typeof source === 'number' && source !== target ? source : undefined
  const all = [
    ...(await statuses(target)),
    ...(ofFork === undefined ? [] : await statuses(ofFork).catch(ignoreHidden)),
  ]
  const newest = new Map<string, Status>()
  for (const each of all.toSorted((one, other) => one.id - other.id)) newest.set(each.name, each)
  return {
    sha,
    checks: [
      ...(pipeline
        ? [checkOf(`pipeline ${pipeline.id}`, isOfHead(pipeline, sha) ? pipeline.status : 'pending', false)]
        : []),
      ...[...newest.values()].map(({ name, status: says, allow_failure: mayFail }) =>
        checkOf(name, says, mayFail),
      ),
    ],
  }
}

/**
 * False for the pipeline of an older head, which GitLab names until the new head has one
 * (`head_pipeline` of lib/api/entities/merge_request.rb, `diff_head_pipeline` of app/models/merge_request.rb). The pipeline of a
 * merge request runs on a commit of its own.
 */
function isOfHead({ sha, ref }: NonNullable<MergeRequest['head_pipeline']>, head: string): boolean {
  return sha === head || ref?.startsWith('refs/merge-requests/') === true
}

function ignoreHidden(error: unknown): readonly Status[] {
  if (isNotFound(error) || (error instanceof Refusal && error.providerStatus === 403)) return []
  throw error
}
