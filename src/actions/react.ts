import { z } from 'zod'
import { REACTIONS, type Provider } from '../providers/provider.js'
import { oneOf, positive, repoName } from './request.js'

/** The body of POST /api/react. */
export const reactRequest = z
  .strictObject({
    owner: repoName,
    repo: repoName,
    issueNumber: positive,
    content: oneOf(REACTIONS),
    commentId: positive.optional(),
    reviewCommentId: positive.optional(),
  })
  .refine(({ commentId, reviewCommentId }) => commentId === undefined || reviewCommentId === undefined, {
    path: ['reviewCommentId'],
    message: 'not together with commentId',
    // Also when other fields are wrong, so that every wrong one is named at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

/**
 * Reacts to an issue or pull request, or to one of its comments, as the user whose token it is.
 * @throws RelayError as `Provider` lists them.
 */
export async function react(provider: Provider, token: string, input: z.infer<typeof reactRequest>) {
  const { id, content, created } = await provider.react(token, input)
  return { ok: true as const, id, content, created }
}
