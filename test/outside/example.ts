import type { Env } from '../kit/folder.js'
import { type Filled, fill, NOW } from '../kit/journal.js'
import { type Place, place, type PlaceOptions } from '../kit/place.js'
import type { Running } from '../kit/run.js'

export const URL_TARGET = '*=http://localhost:3000/hook'
const EXEC_TARGET = 'push=exec:./deploy.sh'
/** Contains secrets that are never shown. */
const SECRET_TARGET = 'issues=https://u:password-canary@example.com/x?token=query-canary'

const MINUTE = 60_000

/** A machine without a code host and a webhook secret, whose local time is that of the tests. */
export function bare(options: Omit<PlaceOptions, 'host'> = {}): Promise<Place> {
  const { TZ } = process.env
  return place({ host: 'none', ...options, env: { RELAY_WEBHOOK_SECRET: undefined, TZ, ...options.env } })
}

/** A pull request's delivery, as its sender wrote it: with a number that no program keeps. */
export function opened(id: string, more: Partial<Filled> = {}): Filled {
  return {
    id,
    event: 'pull_request',
    action: 'opened',
    headers: [
      ['Content-Type', 'application/json'],
      ['X-GitHub-Event', 'pull_request'],
    ],
    body: '{"action":"opened","big":12345678901234567890,"labels":[],"repository":{"full_name":"octo/demo"}}',
    ...more,
  }
}

/**
 * A machine whose journal has five entries: not forwarded, succeeded with duplicates, failed, waiting, and one with three
 * targets.
 */
export async function example(): Promise<Place> {
  const here = await bare()
  const down = { outcome: 'unreachable', status: null, error: 'connection refused', answer: '' } as const
  const refused = { at: NOW + 3 * MINUTE, outcome: 'refused', status: 404, ms: 12_345 } as const
  await fill(here, [
    opened('a'),
    {
      id: 'b',
      receivedAt: NOW + MINUTE,
      number: null,
      duplicates: 2,
      forwards: { [URL_TARGET]: { since: NOW, attempts: [{ at: NOW + 5 }] } },
    },
    {
      id: 'c',
      receivedAt: NOW + 2 * MINUTE,
      event: 'issues',
      action: 'closed',
      number: 12,
      forwards: {
        [URL_TARGET]: {
          status: 'failed',
          since: NOW,
          reason: 'answered 404',
          attempts: [
            ...[0, 1, 2].map((i) => ({ ...down, at: NOW + 2 * MINUTE - 2 + i })),
            { ...refused, answer: 'no\u001b[2J such\r\nthing\n' },
          ],
        },
      },
    },
    {
      id: 'd',
      receivedAt: NOW + 3 * MINUTE,
      repo: null,
      number: null,
      forwards: { [URL_TARGET]: {} },
    },
    {
      id: 'e',
      receivedAt: NOW + 4 * MINUTE,
      event: 'x\u001b[2J',
      repo: 'octo/other',
      verifiedBy: 'previous',
      forwards: {
        [URL_TARGET]: {},
        [EXEC_TARGET]: {
          status: 'failed',
          since: NOW,
          reason: 'exit code 1',
          attempts: [{ at: NOW + 5, outcome: 'refused', status: 1 }],
        },
        [SECRET_TARGET]: {},
      },
    },
  ])
  return here
}

/** The first lines of what a command has printed, once there are so many. */
export async function lines(running: Running, count: number): Promise<string[]> {
  await running.prints(new RegExp(`^(?:.*\\n){${count}}`))
  return running.out.split('\n').slice(0, count)
}

/** What was printed as an object on each line. */
export function objects(printed: string | { readonly out: string }): Record<string, unknown>[] {
  const out = typeof printed === 'string' ? printed : printed.out
  return out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

/** What `relay doctor` finds by one of its checks. */
export async function checkOf(
  here: Place,
  name: string,
  env: Env = {},
  ...flags: string[]
): Promise<Record<string, unknown> | undefined> {
  const { out } = await here.runWith({ env }, 'doctor', '--json', ...flags)
  const { checks }: { checks: Record<string, unknown>[] } = JSON.parse(out)
  return checks.find(({ check }) => check === name)
}

/** The numbers of the deliveries that were printed so. */
export function numbersOf(out: string): unknown[] {
  return objects(out).map(({ n }) => n)
}

/** The events of GitHub that `relay trigger` sends, as it lists them. */
export const GITHUB_TRIGGERS: readonly string[] = (
  'ping push check_run.completed check_suite.completed create delete fork issues.opened issues.closed ' +
  'issues.edited issues.labeled issues.reopened issue_comment.created issue_comment.deleted ' +
  'issue_comment.edited pull_request.opened pull_request.closed pull_request.labeled ' +
  'pull_request.ready_for_review pull_request.reopened pull_request.synchronize ' +
  'pull_request_review.submitted release.published star.created star.deleted watch.started ' +
  'workflow_run.completed check_run.created check_suite.requested commit_comment.created ' +
  'deployment.created deployment_status.created discussion.created discussion_comment.created ' +
  'installation.created issues.assigned member.added pull_request.review_requested ' +
  'pull_request_review.dismissed pull_request_review_comment.created repository.created status ' +
  'workflow_job.completed workflow_job.queued workflow_run.requested'
).split(' ')

/** Those of Gitea. */
export const GITEA_TRIGGERS: readonly string[] = (
  'push create delete repository.created repository.deleted wiki.created wiki.edited wiki.deleted ' +
  'issues.opened issues.closed issues.reopened issue_comment.created issue_comment.deleted ' +
  'issue_comment.edited pull_request.opened pull_request.closed pull_request.reopened ' +
  'pull_request.synchronized'
).split(' ')
