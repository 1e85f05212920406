import type { AppRequest } from '../registration.js'

/** The least that comment, merge and react, hooks, and reading checks and statuses need. */
const PERMISSIONS = {
  issues: 'write',
  pull_requests: 'write',
  contents: 'write',
  repository_hooks: 'write',
  checks: 'read',
  statuses: 'read',
} as const

/** The events that an App with these permissions can have, of those that happen on issues, pull requests and branches. */
const EVENTS = [
  'check_run',
  'check_suite',
  'create',
  'delete',
  'issue_comment',
  'issues',
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'push',
  'release',
  'status',
] as const

/**
 * The manifest of an App for relay
 * (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest#github-app-manifest-parameters).
 */
export function manifestOf({ name, redirectUrl, callbackUrl, hook }: AppRequest): string {
  return JSON.stringify({
    name,
    // The homepage, which a manifest must name.
    url: new URL(callbackUrl).origin,
    description: 'Receives webhooks and acts for its users, with relay',
    redirect_url: redirectUrl,
    callback_urls: [callbackUrl],
    public: false,
    default_permissions: PERMISSIONS,
    ...(hook && { hook_attributes: hook, default_events: EVENTS }),
  })
}
