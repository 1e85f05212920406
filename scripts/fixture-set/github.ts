import { createRequire } from 'node:module'
import { FORM_TYPE, hmac, JSON_TYPE, type Recording } from './recording.js'

const COMMON = `
  ping push create delete fork status star.created star.deleted watch.started
  issues.opened issues.edited issues.labeled issues.assigned issues.closed issues.reopened
  issue_comment.created issue_comment.edited issue_comment.deleted
  pull_request.opened pull_request.labeled pull_request.ready_for_review
  pull_request.review_requested pull_request.synchronize pull_request.closed pull_request.reopened
  pull_request_review.submitted pull_request_review.dismissed pull_request_review_comment.created
  check_run.created check_run.completed check_suite.requested check_suite.completed
  workflow_run.requested workflow_run.completed workflow_job.queued workflow_job.completed
  deployment.created deployment_status.created release.published
  discussion.created discussion_comment.created commit_comment.created
  repository.created member.added installation.created
`

const EXAMPLES: readonly { readonly name: string; readonly examples: readonly Payload[] }[] = createRequire(
  import.meta.url,
)('@octokit/webhooks-examples')

interface Payload {
  readonly action?: string
  readonly commits?: readonly unknown[]
  readonly issue?: object
}

/** GitHub's common events, `event.action` each; a form; and one whose bytes are not UTF-8. */
export function githubDeliveries(): Recording[] {
  const form = Buffer.from(String(new URLSearchParams({ payload: JSON.stringify(example('push')) })))
  // Only the payload must be UTF-8, not an extra field.
  const latin1 = Buffer.concat([form, Buffer.from('&note=caf\u00e9', 'latin1')])
  return [
    ...COMMON.trim()
      .split(/\s+/)
      .map((name) => recording(name, Buffer.from(JSON.stringify(example(name))), JSON_TYPE)),
    recording('push.form', form, FORM_TYPE),
    { ...recording('push.form.latin1', latin1, FORM_TYPE), forTests: true },
  ]
}

/** GitHub's own example; for a push, one with commits. */
function example(name: string): Payload {
  // GitHub has no example of it.
  if (name === 'issues.closed') return closed(example('issues.opened'))
  const [event, action] = name.split('.')
  const all = EXAMPLES.find((each) => each.name === event)?.examples ?? []
  const found = all.find((each) => (!action || each.action === action) && each.commits?.length !== 0)
  if (!found) throw new Error(`GitHub has no example of ${name}`)
  return found
}

function closed(payload: Payload): Payload {
  const at = '2019-05-15T15:20:25Z'
  const issue = {
    ...payload.issue,
    state: 'closed',
    state_reason: 'completed',
    updated_at: at,
    closed_at: at,
  }
  return { ...payload, action: 'closed', issue }
}

function recording(name: string, body: Buffer, type: string): Recording {
  const [event = ''] = name.split('.')
  return {
    provider: 'github',
    name,
    event,
    body,
    headers: (deliveryId) => [
      ['Accept', '*/*'],
      ['Content-Type', type],
      ['User-Agent', 'GitHub-Hookshot/044aadd'],
      ['X-GitHub-Delivery', deliveryId],
      ['X-GitHub-Event', event],
      ['X-GitHub-Hook-ID', '292430182'],
      ['X-GitHub-Hook-Installation-Target-ID', '186853002'],
      ['X-GitHub-Hook-Installation-Target-Type', 'repository'],
      ['X-Hub-Signature', `sha1=${hmac('sha1', body)}`],
      ['X-Hub-Signature-256', `sha256=${hmac('sha256', body)}`],
    ],
  }
}
