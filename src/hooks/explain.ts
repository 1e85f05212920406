import { type ErrorKind, RelayError } from '../base/errors.js'
import { Refusal } from '../providers/errors.js'
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
  const { message, retryAfter } = error
  // A redirect is no failure that ends by itself.
  const kind = isMoved(error) ? 'not_found' : error.kind
  return new RelayError(kind, `${message.replace(/\.$/, '')}. ${fix}`, { retryAfter, cause: error })
}

function fixOf(
  error: RelayError,
  { name }: Pick<Provider, 'name'>,
  { owner, repo }: RepoTarget,
): string | undefined {
  const { kind, message, retryAfter } = error
  if (isMoved(error)) return 'The repository was renamed or moved. Give its new name'
  const rights = fixRights(error, name)
  const fixes: Readonly<Partial<Record<ErrorKind, string>>> = {
    invalid_token: 'Sign in again with relay login',
    not_found: `${rights}. Check the name, or sign in as another user`,
    forbidden: fixForbidden(message, owner) ?? rights,
    unprocessable: fixRefused(message, `${owner}/${repo}`),
    rate_limited: `Try again in ${retryAfter ?? 60} s`,
    provider_failed: 'Try again later',
    provider_timeout: 'Try again later',
  }
  return fixes[kind]
}

/** Whether the code host named another address for the repository, which a write does not follow. */
export function isMoved(error: RelayError): boolean {
  return error instanceof Refusal && error.providerStatus >= 300 && error.providerStatus < 400
}

function fixRights(error: RelayError, name: Provider['name']): string {
  const missing = error instanceof Refusal ? error.missingRight : undefined
  if (missing !== undefined)
    return `The token needs ${missing}. Sign in with ${NEEDED[name]}: relay login, or relay login --with-token`
  return `Managing hooks needs admin rights on the repository, and a token with ${NEEDED[name]}`
}

/** The cases in which the user's rights are not what is missing, by the code hosts' messages. */
function fixForbidden(message: string, owner: string): string | undefined {
  if (/OAuth App access restrictions/i.test(message))
    return `Ask an owner of ${owner} to approve the OAuth app in the organization's settings, under third-party access`
  if (/SAML/.test(message))
    return `Sign in again with relay login, and authorize the app for ${owner} when the code host asks`
  if (/archived/i.test(message)) return 'Unarchive the repository first, or do without its hook'
  if (/disabled by administrator/i.test(message)) return 'Ask the administrator of the code host for webhooks'
  return undefined
}

function fixRefused(message: string, repo: string): string {
  if (/more than \d+ hooks/.test(message)) return `Remove one that is not needed: relay hook list ${repo}`
  if (/reachable over the public Internet|localhost|private/i.test(message))
    return 'Receive through relay serve --tunnel, or give an address that the code host can reach with --url'
  return `See what is there with relay hook list ${repo}`
}
