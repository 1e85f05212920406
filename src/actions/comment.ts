import { z } from 'zod'
import type { Provider } from '../providers/provider.js'
import { positive, repoName, text } from './request.js'

/** The body of POST /api/comment. How long a comment may be is the provider's to say. */
export const commentRequest = z.strictObject({
  owner: repoName,
  repo: repoName,
  issueNumber: positive,
  body: text.regex(/\S/, 'must not be blank'),
})

/**
 * Comments on an issue or pull request as the user whose token it is.
 * @throws RelayError as `Provider` lists them.
 */
export async function comment(provider: Provider, token: string, input: z.infer<typeof commentRequest>) {
  const { id, url } = await provider.comment(token, input)
  return { ok: true as const, id, url }
}
