import type { Context } from 'hono'
import { readBody, type HttpEnv } from '../../http/body.js'
import { isObject } from '../../json/parse.js'
import { found, GitHubError } from '../github-error.js'
import type { Issue, Repo } from '../model.js'
import type { SandboxState } from '../state.js'
import type { RestEnv } from './env.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** Body limit. The largest comment has 65,536 characters, each up to 12 bytes when escaped. */
const BODY_LIMIT = 1_048_576

/** Reads the request's JSON object. An absent body is an empty object. */
export async function readObject(c: Pick<Context<HttpEnv>, 'env' | 'req'>): Promise<JsonObject> {
  const text = new TextDecoder().decode(await readBody(c, BODY_LIMIT))
  const value = parse(text || '{}')
  if (!isObject(value)) throw new GitHubError(400, 'Body should be a JSON object')
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new GitHubError(400, 'Problems parsing JSON')
  }
}

export function readText(body: JsonObject, field: string): string | undefined {
  const value = body[field]
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  throw new GitHubError(
    422,
    `Invalid request.\n\nFor 'properties/${field}', ${JSON.stringify(value)} is not a string.`,
  )
}

/** @throws GitHubError 404, also for a repository that the token is not for */
export function findRepo(c: Context<RestEnv>, state: SandboxState): Repo {
  const repo = found(state.repo(c.req.param('owner') ?? '', c.req.param('repo') ?? ''))
  const { repos } = c.get('grant')
  return found(!repos || repos.has(repo.fullName) ? repo : undefined)
}

export function findIssue(c: Context<RestEnv>, state: SandboxState): Issue {
  const repo = findRepo(c, state)
  if (!repo.hasIssues) throw new GitHubError(410, 'Issues are disabled for this repo')
  return found(state.issue(repo.fullName, Number(c.req.param('number'))))
}
