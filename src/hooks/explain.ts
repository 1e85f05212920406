import { type ErrorKind, RelayError } from '../base/errors.js'
import type { Provider, RepoTarget } from '../providers/provider.js'

/** What a token needs to manage the hooks of a repository, in the words of each code host's documentation. */
const NEEDED: Readonly<Record<Provider['name'], string>> = {
  github: 'the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)',
  sandbox: 'the scope repo or admin:repo_hook (a fine-grained token: the permission Webhooks)',
  gitea: 'the scope write:repository',
}

/** The error of a call about a repository's hooks, with what to do about it. Others stay as they are. */
export function explainHookError(error: unknown, host: Pick<Provider, 'name'>, repo: RepoTarget): unknown {
  if (!(error instanceof RelayError)) return error
  const fix = fixOf(error, host, repo)
  if (fix === undefined) return error
  const { kind, message, retryAfter } = error
  return new RelayError(kind, `${repo.owner}/${repo.repo}: ${message}. ${fix}`, { retryAfter, cause: error })
}

function fixOf(
  { kind, message, retryAfter }: RelayError,
  { name }: Pick<Provider, 'name'>,
  { owner, repo }: RepoTarget,
): string | undefined {
  const rights = `Managing hooks needs admin rights on the repository, and a token with ${NEEDED[name]}`
  const fixes: Readonly<Partial<Record<ErrorKind, string>>> = {
    invalid_token: 'Sign in again with relay login',
    not_found: `${rights}. Check the name, or sign in as another user`,
    forbidden: /OAuth App access restrictions/i.test(message)
      ? `Ask an owner of ${owner} to approve the OAuth app in the organization's settings, under third-party access`
      : rights,
    unprocessable: fixRefused(message, `${owner}/${repo}`),
    rate_limited: `Try again in ${retryAfter ?? 60} s`,
    provider_failed: 'Try again later',
    provider_timeout: 'Try again later',
  }
  return fixes[kind]
}

function fixRefused(message: string, repo: string): string {
  if (/more than \d+ hooks/.test(message)) return `Remove one that is not needed: relay hook list ${repo}`
  if (/reachable over the public Internet|localhost|private/i.test(message))
    return 'Receive through relay serve --tunnel, or give an address that the code host can reach with --url'
  return `See what is there with relay hook list ${repo}`
}
