import { z } from 'zod'
import { MERGE_METHODS, type MergeResult, type Provider } from '../providers/provider.js'
import { oneOf, positive, repoName, text } from './request.js'

/** The body of POST /api/merge. */
export const mergeRequest = z.strictObject({
  owner: repoName,
  repo: repoName,
  pullNumber: positive,
  method: oneOf(MERGE_METHODS).optional(),
  title: text.optional(),
  message: text.optional(),
  // A shortened id would match no head and read like a changed one.
  sha: text
    .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i, 'must be a whole commit id of 40 or 64 hexadecimal digits')
    .toLowerCase()
    .optional(),
})

/**
 * Merges a pull request as the user whose token it is.
 * @throws RelayError as `Provider` lists them; `conflict` when it cannot be merged or its head is not `sha`.
 */
export async function merge(
  provider: Provider,
  token: string,
  input: z.infer<typeof mergeRequest>,
): Promise<{ ok: true } & MergeResult> {
  return { ok: true, ...(await provider.merge(token, input)) }
}
