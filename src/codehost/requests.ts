import { z } from 'zod/mini'
import { RelayError } from '../base/errors.js'
import { parseJson } from '../json/parse.js'
import { MERGE_METHODS, REACTIONS } from './actions.js'
import { type HostTraits, type IssueRef, type Repo } from './host.js'

/** Limits of an error response, so that it does not repeat an invalid request in full. */
const MAX_PROBLEMS = 10
const MAX_NAME_LENGTH = 50

const message = (why: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'required' : why),
})

/** Name of an owner or repository. `.` and `..` could reach other paths of the provider with the user's token. */
const repoName = z
  .string(message('must be a string'))
  .check(
    z.regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..'),
  )

/** Number of an issue, pull request or comment. */
const positive = z
  .int(message('must be a positive whole number'))
  .check(z.positive('must be a positive whole number'))

const text = z.string(message('must be a string'))

function oneOf<const T extends readonly string[]>(words: T) {
  return z.enum(words, message(`must be one of ${words.join(', ')}`))
}

/** An owner within groups, checked part by part. GitLab nests 20 groups. */
const ownerPath = z
  .string(message('must be a string'))
  .check(
    z.refine(
      (text) =>
        text.split('/').length <= 21 && text.split('/').every((part) => repoName.safeParse(part).success),
      'must be names with slashes between them, each 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..',
    ),
  )

/** Runs also if other fields are invalid, so that one response names all of them. */
const isFields = ({ value }: { value: unknown }): boolean => typeof value === 'object' && value !== null

/** Exactly one of these fields. */
function oneNumber<T extends z.ZodMiniType<Numbered>>(schema: T): T {
  return schema.check(
    z.refine(
      ({ issueNumber, pullNumber }: Numbered) => issueNumber !== undefined || pullNumber !== undefined,
      {
        path: ['issueNumber'],
        message: 'required',
        when: isFields,
      },
    ),
    z.refine(
      ({ issueNumber, pullNumber }: Numbered) => issueNumber === undefined || pullNumber === undefined,
      {
        path: ['pullNumber'],
        message: 'not together with issueNumber',
        when: isFields,
      },
    ),
  )
}

interface Numbered {
  readonly issueNumber?: number | undefined
  readonly pullNumber?: number | undefined
}

/** Schemas of the bodies of the actions, for a code host of this kind. */
export function actionRequests({ nestedOwners }: Pick<HostTraits, 'nestedOwners'>) {
  const place = { owner: nestedOwners ? ownerPath : repoName, repo: repoName }
  /** An issue, or a pull request by `pullNumber`, which matters where they are numbered separately. */
  const subject = { ...place, issueNumber: z.optional(positive), pullNumber: z.optional(positive) }
  return {
    /** Body of POST /api/comment. The provider limits the length of a comment. */
    comment: oneNumber(
      z.strictObject({
        ...subject,
        body: text.check(z.regex(/\S/, 'must not be blank')),
        quickActions: z.optional(z.boolean(message('must be true or false'))),
      }),
    ),
    /** Body of POST /api/merge. */
    merge: z.strictObject({
      ...place,
      pullNumber: positive,
      method: z.optional(oneOf(MERGE_METHODS)),
      title: z.optional(text),
      message: z.optional(text),
      // An abbreviated id would match no head, and look like a changed head.
      sha: z.optional(
        text.check(
          z.regex(
            /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i,
            'must be a whole commit id of 40 or 64 hexadecimal digits',
          ),
          z.toLowerCase(),
        ),
      ),
      auto: z.optional(z.boolean(message('must be true or false'))),
    }),
    /** Body of POST /api/react. */
    react: oneNumber(
      z
        .strictObject({
          ...subject,
          content: oneOf(REACTIONS),
          commentId: z.optional(positive),
          reviewCommentId: z.optional(positive),
        })
        .check(
          z.refine(
            ({ commentId, reviewCommentId }) => commentId === undefined || reviewCommentId === undefined,
            { path: ['reviewCommentId'], message: 'not together with commentId', when: isFields },
          ),
        ),
    ),
  }
}

/** Reference to the subject of a comment or a reaction. */
export function issueRefOf({ owner, repo, issueNumber, pullNumber }: Repo & Numbered): IssueRef {
  return pullNumber === undefined
    ? { owner, repo, number: issueNumber ?? 0 }
    : { owner, repo, number: pullNumber, kind: 'pull' }
}

/**
 * Parses the body of an action request. Unknown fields are errors, because the action cannot be undone and a misspelled
 * option must not be ignored.
 * @throws RelayError `bad_request` for a body that is not UTF-8 or not a JSON object, and for invalid fields, which it
 * names
 */
export function parseRequest<T>(schema: z.ZodMiniType<T> & Partial<Shaped>, bytes: Uint8Array): T {
  const { success, data, error } = schema.safeParse(parseBody(bytes))
  if (success) return data
  const fields = Object.keys(schema.shape ?? {})
  const placeOf = ({ path: [first] }: z.core.$ZodIssue): number =>
    fields.indexOf(String(first)) >= 0 ? fields.indexOf(String(first)) : fields.length
  const issues = error.issues.toSorted((one, other) => placeOf(one) - placeOf(other))
  const problems = issues.flatMap(problemsOf).slice(0, MAX_PROBLEMS)
  throw new RelayError('bad_request', `Invalid request: ${problems.join('; ')}`)
}

/** A schema with fields, whose order is that of their errors. */
interface Shaped {
  readonly shape: object
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
