import { z } from 'zod'
import { Refusal } from './errors.js'
import { send, type UserApi } from './http.js'

/** The fields of a pull request that show why it was not merged. Gitea has no `mergeable_state`, old versions no `draft`. */
const pullState = z.object({
  state: z.string(),
  merged: z.boolean(),
  draft: z.boolean().optional(),
  /** Null while GitHub checks; at Gitea false also for a draft and while it checks. */
  mergeable: z.boolean().nullish(),
  mergeable_state: z.string().optional(),
})
type PullState = z.infer<typeof pullState>

/** Messages of a code host for reasons that the pull request does not show. */
interface RefusalMessages {
  readonly forbidden: RegExp
  readonly draft: RegExp
}

/**
 * The error to throw for a refused merge. Code hosts answer 404 and 405 for many reasons, so it reads the pull request after
 * these and names the reason: `conflict` when it is already merged, closed, a draft, conflicts, or lacks approvals
 * or checks; `forbidden` when it can be read but not merged. Otherwise, or when it cannot be read, `error` itself.
 * Only reads: the merge is not sent again.
 *
 * Sources: docs.github.com/rest/pulls/pulls ("Get a pull request"; the values of `mergeable_state` are those of GraphQL's
 * MergeStateStatus); Gitea's routers/api/v1/repo/pull.go (MergePullRequest) and modules/structs/pull.go.
 */
export async function explainRefusal(
  api: UserApi,
  path: readonly (string | number)[],
  error: unknown,
  messages?: RefusalMessages,
): Promise<unknown> {
  if (!(error instanceof Refusal) || ![404, 405].includes(error.providerStatus)) return error
  const call = { method: 'GET', path, answer: pullState } as const
  const pull = (await send(api, call).catch(() => undefined))?.value
  if (!pull) return error
  const { upstreamMessage: message, providerStatus } = error
  const quoted = message && ` (${api.label}: ${message})`
  const refused = (kind: 'conflict' | 'forbidden', why: string): Refusal =>
    new Refusal(kind, `Not merged: ${why}`, { providerStatus })
  if (pull.merged) return refused('conflict', 'it is already merged')
  if (pull.state === 'closed') return refused('conflict', 'it is closed')
  if (providerStatus === 404 || messages?.forbidden.test(message))
    return refused('forbidden', `this account or its token may not merge it${quoted}`)
  const why = messages?.draft.test(message) ? IS_DRAFT : reasonOf(pull)
  return why ? refused('conflict', why + quoted) : error
}

const IS_DRAFT = 'it is a draft'

function reasonOf({ draft, mergeable, mergeable_state }: PullState): string | undefined {
  if (draft) return IS_DRAFT
  const reason = REASONS.get(mergeable_state ?? '')
  if (reason || mergeable !== false) return reason
  return 'it conflicts with its base branch, or the code host is still checking that'
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['dirty', 'it conflicts with its base branch'],
  ['behind', 'its branch must first be brought up to date with the base branch'],
  ['blocked', 'approvals or checks are missing'],
  ['draft', IS_DRAFT],
  ['unknown', 'the code host is still checking whether it can be merged; try again'],
])
