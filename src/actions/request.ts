import { z } from 'zod'
import { RelayError } from '../base/errors.js'

/** So that a request full of nonsense is not answered with all of it. */
const MOST_COMPLAINTS = 10
const LONGEST_NAME = 50

const says = (why: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? 'required' : why),
})

/** The name of an owner or repository. `.` and `..` would walk the provider's paths with the user's token. */
export const repoName = z
  .string(says('must be a string'))
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, 'must be 1 to 100 of A-Z a-z 0-9 . _ - and not . or ..')

/** The number of an issue, pull request or comment. */
export const positive = z
  .int(says('must be a positive whole number'))
  .positive('must be a positive whole number')

export const text = z.string(says('must be a string'))

/** One of a list of words. */
export function oneOf<const T extends readonly string[]>(words: T) {
  return z.enum(words, says(`must be one of ${words.join(', ')}`))
}

/**
 * Reads the body of an action request. A field that the action does not have is refused: an option misspelt must not
 * become an option left out, for what follows cannot be undone.
 * @throws RelayError `bad_request`: not UTF-8 or not a JSON object; or a field is wrong, with every such field named.
 */
export function parseRequest<T>(schema: z.ZodType<T>, bytes: Uint8Array): T {
  const { success, data, error } = schema.safeParse(parseJson(bytes))
  if (success) return data
  const complaints = error.issues.flatMap(complaintsOf).slice(0, MOST_COMPLAINTS)
  throw new RelayError('bad_request', `Invalid request: ${complaints.join('; ')}`)
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (cause) {
    throw new RelayError('bad_request', 'Invalid request: not valid JSON', { cause })
  }
}

function complaintsOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => `${key.slice(0, LONGEST_NAME)}: unknown field`)
  if (issue.path.length === 0) return ['not a JSON object']
  return [`${issue.path.join('.')}: ${issue.message}`]
}
