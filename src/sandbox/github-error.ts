import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'

const DOCS = 'https://docs.github.com/rest'

/** Entry of `errors` in a 422 response. */
export interface FieldError {
  readonly resource: string
  readonly field?: string
  readonly code: 'missing_field' | 'invalid' | 'custom' | 'unprocessable'
  readonly message?: string
}

/** Error response with GitHub's text; a route throws it, {@link respondWithError} sends it. */
export class GitHubError extends Error {
  override readonly name = 'GitHubError'
  readonly status: ContentfulStatusCode
  readonly errors: readonly FieldError[]

  constructor(status: ContentfulStatusCode, message: string, errors: readonly FieldError[] = []) {
    super(message)
    this.status = status
    this.errors = errors
  }
}

/** Sends GitHub's error body: `{message, errors?, documentation_url, status}`, where `status` is a string. */
export function respondWithError(c: Context, error: unknown, log: Log): Response {
  const { status, message, errors } = error instanceof GitHubError ? error : fromRelay(error, log)
  const body = {
    message,
    ...(errors.length > 0 && { errors }),
    documentation_url: DOCS,
    status: String(status),
  }
  return c.json(body, status)
}

/** Converts an error of the shared HTTP edge, such as a body over the limit. A bug becomes a plain 500. */
function fromRelay(error: unknown, log: Log): GitHubError {
  const { kind, status, message } = toRelayError(error)
  if (kind === 'internal') log.error('The sandbox failed to respond', error)
  return new GitHubError(status, message)
}

/** Returns `value`. @throws GitHubError 404 when it is undefined. */
export function found<T>(value: T | undefined): T {
  if (value === undefined) throw new GitHubError(404, 'Not Found')
  return value
}
