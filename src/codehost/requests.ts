import { z } from 'zod'
import { RelayError } from '../base/errors.js'
import { parseJson } from '../json/parse.js'
import { MERGE_METHODS, REACTIONS } from './host.js'

/** Limits of an error response, so that it does not repeat an invalid request in full. */
const MAX_PROBLEMS = 10
const MAX_NAME_LENGTH = 50

const message = (why: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'required' : why),
})

/** Name of an owner or repository. `.` and `..` could reach other paths of the provider with the user's token. */
const repoName = z
  .string(message('must be a string'))
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..')

/** Number of an issue, pull request or comment. */
const positive = z.int(message('must be a positive whole number')).positive('must be a positive whole number')

const text = z.string(message('must be a string'))

function oneOf<const T extends readonly string[]>(words: T) {
  return z.enum(words, message(`must be one of ${words.join(', ')}`))
}

/** Body of POST /api/comment. The provider limits the length of a comment. */
export const commentRequest = z.strictObject({
  owner: repoName,
  repo: repoName,
  issueNumber: positive,
  body: text.regex(/\S/, 'must not be blank'),
})

/** Body of POST /api/merge. */
export const mergeRequest = z.strictObject({
  owner: repoName,
  repo: repoName,
  pullNumber: positive,
  method: oneOf(MERGE_METHODS).optional(),
  title: text.optional(),
  message: text.optional(),
  // An abbreviated id would match no head, and look like a changed head.
  sha: text
    .regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i, 'must be a whole commit id of 40 or 64 hexadecimal digits')
    .toLowerCase()
    .optional(),
})

/** Body of POST /api/react. */
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
    // Runs even if other fields are invalid, so that one response names all of them.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

/**
 * Parses the body of an action request. Unknown fields are errors, because the action cannot be undone and a misspelled
 * option must not be ignored.
 * @throws RelayError `bad_request` for a body that is not UTF-8 or not a JSON object, and for invalid fields, which it
 * names
 */
export function parseRequest<T>(schema: z.ZodType<T>, bytes: Uint8Array): T {
  const { success, data, error } = schema.safeParse(parseBody(bytes))
  if (success) return data
  const problems = error.issues.flatMap(problemsOf).slice(0, MAX_PROBLEMS)
  throw new RelayError('bad_request', `Invalid request: ${problems.join('; ')}`)
}

function parseBody(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch (cause) {
    throw new RelayError('bad_request', 'Invalid request: not valid JSON', { cause })
  }
}

function problemsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `${key.slice(0, MAX_NAME_LENGTH)}: unknown field`)
  if (issue.path.length === 0) return ['not a JSON object']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
