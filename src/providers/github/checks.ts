// Reads the checks of a pull request's head; loaded with the other calls.
import { z } from 'zod'
import { pullHead, repoPath } from '../common-calls.js'
import { type Call, send, type UserApi } from '../http.js'
import { namesNext, PAGE_SIZE, pages } from '../pages.js'
import type { Check, HeadChecks, PullTarget } from '../provider.js'

const checkRuns = z.object({
  check_runs: z.array(z.object({ name: z.string(), status: z.string(), conclusion: z.string().nullish() })),
})
const combinedStatus = z.object({
  statuses: z.array(z.object({ context: z.string(), state: z.string() })),
})

/**
 * Conclusions that count as success (docs.github.com, "About status checks": successful, skipped and neutral checks let a
 * pull request be merged).
 */
const SUCCESSFUL: ReadonlySet<string> = new Set(['success', 'skipped', 'neutral'])

/**
 * GET /repos/{owner}/{repo}/pulls/{n}, then /commits/{head}/check-runs (the newest of each app and name) and
 * /commits/{head}/status (the newest of each context): checks and statuses are two systems, and a commit can have both.
 * @see https://docs.github.com/en/rest/checks/runs and https://docs.github.com/en/rest/commits/statuses
 */
export async function getHeadChecks(api: UserApi, input: PullTarget): Promise<HeadChecks> {
  const repo = repoPath(input)
  const pull = { method: 'GET', path: [...repo, 'pulls', input.pullNumber], answer: pullHead } as const
  const { sha } = (await send(api, pull)).value.head
  const commit = [...repo, 'commits', sha]
  const [runs, statuses] = await Promise.all([
    collect(api, { ...list([...commit, 'check-runs']), answer: checkRuns }, ({ check_runs }) =>
      check_runs.map(fromRun),
    ),
    collect(api, { ...list([...commit, 'status']), answer: combinedStatus }, ({ statuses }) =>
      statuses.map(fromStatus),
    ),
  ])
  return { sha, checks: [...runs, ...statuses] }
}

const list = (path: readonly (string | number)[]) =>
  ({ method: 'GET', path, query: { per_page: PAGE_SIZE } }) as const

async function collect<T>(api: UserApi, call: Call<T>, read: (page: T) => Check[]): Promise<Check[]> {
  const checks: Check[] = []
  for await (const page of pages(api, call, namesNext)) checks.push(...read(page))
  return checks
}

function fromRun({ name, status, conclusion }: z.infer<typeof checkRuns>['check_runs'][number]): Check {
  if (status !== 'completed' || !conclusion) return { name, state: 'pending', says: status }
  return { name, state: SUCCESSFUL.has(conclusion) ? 'succeeded' : 'failed', says: conclusion }
}

function fromStatus({ context, state }: z.infer<typeof combinedStatus>['statuses'][number]): Check {
  const known = state === 'success' ? 'succeeded' : state === 'pending' ? 'pending' : 'failed'
  return { name: context, state: known, says: state }
}
