/** Scopes that matter in the sandbox, explained for the user (https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps). */
export const SCOPES: Readonly<Record<string, string>> = {
  public_repo: 'Comment, react and merge in public repositories',
  repo: 'Comment, react, merge and manage webhooks in all repositories',
  'admin:repo_hook': 'Make, change and remove webhooks',
  'write:repo_hook': 'Make and change webhooks',
  'read:repo_hook': 'Read webhooks',
  'read:user': 'Read your profile',
}
