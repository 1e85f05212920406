// Reads the statuses of a pull request's head; loaded with the other calls.
import { z } from 'zod'
import { pullHead, repoPath } from '../common-calls.js'
import { send, type UserApi } from '../http.js'
import { PAGE_SIZE, pages } from '../pages.js'
import type { Check, HeadChecks, PullTarget } from '../provider.js'

/** Gitea's own name for a state is `status`. Without any, 1.15 answers with an empty body, and later versions with null. */
const combined = z
  .object({ statuses: z.array(z.object({ context: z.string(), status: z.string() })).nullish() })
  .optional()

/** `skipped`: a job of Gitea Actions whose condition did not hold; since 1.24. */
const SUCCESSFUL: ReadonlySet<string> = new Set(['success', 'skipped'])

/**
 * GET /repos/{owner}/{repo}/pulls/{n}, then /commits/{head}/status: the newest of each context, in pages. The answer
 * does not say how many there are. Gitea Actions reports here too; there are no other checks.
 * @see Gitea's routers/api/v1/repo/status.go, GetCombinedCommitStatusByRef, and modules/structs/status.go
 */
export async function getHeadChecks(api: UserApi, input: PullTarget): Promise<HeadChecks> {
  const repo = repoPath(input)
  const pull = { method: 'GET', path: [...repo, 'pulls', input.pullNumber], answer: pullHead } as const
  const { sha } = (await send(api, pull)).value.head
  const path = [...repo, 'commits', sha, 'status']
  const call = { method: 'GET', path, query: { limit: PAGE_SIZE }, answer: combined } as const
  const found = new Map<string, Check>()
  let before = -1
  const hasMore = (): boolean => found.size > before
  for await (const page of pages(api, call, hasMore)) {
    before = found.size
    for (const { context: name, status: says } of page?.statuses ?? [])
      found.set(name, { name, state: stateOf(says), says })
  }
  return { sha, checks: [...found.values()] }
}

function stateOf(status: string): Check['state'] {
  if (SUCCESSFUL.has(status)) return 'succeeded'
  return status === 'pending' ? 'pending' : 'failed'
}
