import { REACTIONS } from '../codehost/actions.js'
import { memberOf } from '../json/parse.js'
import { fixtureBody } from '../replay/fixture.js'
import { packagedFixture } from '../replay/load.js'
import type { JsonObject } from './protocol.js'
import {
  type CheckSuite,
  type StoredComment,
  type Commit,
  DEMO,
  type Issue,
  OWNER,
  type Pull,
  type PullIssue,
  type Push,
  type StoredReaction,
  type SandboxState,
  type CommitStatus,
  type ReactionSubject,
} from './state.js'

type Swaps = Readonly<Record<string, string>>

/** Id of the App that checks pushed commits, GitHub Actions. */
const ACTIONS_ID = 15368

/** Parts of examples, by event and path. */
const parts = new Map<string, { readonly id: unknown; readonly text: string }>()

/** Reads a part of GitHub's own example of an event, one of the packaged fixtures, as JSON text with its id. */
function partOf(event: string, at: string): { readonly id: unknown; readonly text: string } {
  const key = `${event} ${at}`
  const known = parts.get(key)
  if (known) return known
  const payload: unknown = JSON.parse(Buffer.from(fixtureBody(packagedFixture('github', event))).toString())
  const part = { id: memberOf(payload, `${at}.id`), text: JSON.stringify(memberOf(payload, at)) }
  parts.set(key, part)
  return part
}

/** GitHub's opaque id of an object. */
export function nodeId(kind: string, id: number): string {
  return Buffer.from(`${kind.length.toString().padStart(2, '0')}:${kind}${id}`).toString('base64')
}

/** Path of an issue or pull request on the web site. */
export function webPath({ repo, number, pull }: Issue): string {
  return `/${repo}/${pull ? 'pull' : 'issues'}/${number}`
}

/** Represents the sandbox's state over REST and in webhooks: GitHub's examples, with every live field replaced. */
export class Payloads {
  readonly #state: SandboxState
  readonly #url: () => string

  constructor(state: SandboxState, url: () => string) {
    this.#state = state
    this.#url = url
  }

  /** The web address, without a trailing slash. */
  get web(): string {
    return this.#url()
  }

  /** The REST API's address. */
  get api(): string {
    return `${this.web}/api/v3`
  }

  repoApi(fullName: string): string {
    return `${this.api}/repos/${fullName}`
  }

  /** @see https://docs.github.com/rest/users/users */
  user(login: string): JsonObject {
    const { id, type } = this.#state.user(login)
    return {
      ...this.#like('User', id, 'issues.opened', 'sender', DEMO, { Codertocat: login }),
      avatar_url: `${this.web}/${login}.png`,
      type,
      user_view_type: 'public',
    }
  }

  /** @see https://docs.github.com/rest/repos/repos */
  repository(fullName: string): JsonObject {
    const { id, description, hasIssues, createdAt } = this.#state.repo(fullName)
    const { issues } = this.#state
    const open = issues.filter((issue) => issue.repo === fullName && !issue.closedAt).length
    return {
      ...this.#like('Repository', id, 'issue_comment.edited', 'repository', fullName),
      owner: this.user(OWNER),
      description,
      created_at: createdAt,
      updated_at: createdAt,
      pushed_at: this.#state.pushedAt(fullName),
      has_issues: hasIssues,
      has_discussions: false,
      has_pages: false,
      allow_forking: true,
      open_issues_count: open,
      open_issues: open,
      default_branch: 'main',
    }
  }

  /** Issue, or a pull request as an issue (https://docs.github.com/rest/issues/issues). */
  issue(issue: Issue): JsonObject {
    const { repo, number, pull } = issue
    const html = this.web + webPath(issue)
    const links = {
      url: `${this.repoApi(repo)}/pulls/${number}`,
      html_url: html,
      diff_url: `${html}.diff`,
      patch_url: `${html}.patch`,
      merged_at: pull?.merge?.mergedAt ?? null,
    }
    const swaps = { 'issues/1': `issues/${number}` }
    const { draft, ...fields } = this.#like('Issue', issue.id, 'issues.reopened', 'issue', repo, swaps)
    return {
      ...fields,
      html_url: html,
      ...this.#conversation(issue),
      reactions: this.#reactions({ kind: 'issue', id: issue.id }, `${this.repoApi(repo)}/issues/${number}`),
      state_reason: null,
      ...(pull && { draft, pull_request: links }),
    }
  }

  /** Comment on an issue or pull request (https://docs.github.com/rest/issues/comments). */
  comment(issue: Issue, comment: StoredComment): JsonObject & { readonly url: string } {
    const { repo, id, user } = comment
    const url = `${this.repoApi(repo)}/issues/comments/${id}`
    return {
      ...this.#like('IssueComment', id, 'issue_comment.edited', 'comment', repo),
      url,
      html_url: `${this.web}${webPath(issue)}#issuecomment-${id}`,
      issue_url: `${this.repoApi(repo)}/issues/${issue.number}`,
      user: this.user(user),
      created_at: comment.createdAt,
      updated_at: comment.updatedAt,
      author_association: associationOf(user),
      body: comment.body,
      reactions: this.#reactions({ kind: 'comment', id }, url),
    }
  }

  /** @see https://docs.github.com/rest/pulls/pulls */
  pull(issue: PullIssue): JsonObject {
    const { repo, number, pull } = issue
    const { id, head, base, merge, mergeable } = pull
    const swaps = {
      'issues/2': `issues/${number}`,
      'pull/2': `pull/${number}`,
      'pulls/2': `pulls/${number}`,
      // Head of the example.
      ec26c3e57ca3a959ca5aad62de7213c562f8c821: head.sha,
    }
    const isReviewed = (comment: StoredComment): boolean =>
      comment.repo === repo && comment.issueNumber === number
    const side = ({ ref, sha }: Pull['head']): JsonObject => {
      return { label: `${OWNER}:${ref}`, ref, sha, user: this.user(OWNER), repo: this.repository(repo) }
    }
    return {
      ...this.#like('PullRequest', id, 'pull_request.closed', 'pull_request', repo, swaps),
      ...this.#conversation(issue),
      requested_reviewers: [],
      head: side(head),
      base: side(base),
      merged: merge !== undefined,
      merged_at: merge?.mergedAt ?? null,
      merged_by: merge ? this.user(merge.user) : null,
      merge_commit_sha: merge?.sha ?? null,
      mergeable: merge ? null : mergeable,
      rebaseable: merge ? null : mergeable,
      mergeable_state: merge ? 'unknown' : mergeable ? 'clean' : 'dirty',
      review_comments: this.#state.reviewComments.filter(isReviewed).length,
    }
  }

  /** @see https://docs.github.com/rest/reactions/reactions */
  reaction({ id, user, content, createdAt }: StoredReaction): JsonObject {
    return { id, node_id: nodeId('Reaction', id), user: this.user(user), content, created_at: createdAt }
  }

  /** @see https://docs.github.com/rest/commits/statuses */
  status(
    { repo, sha }: Commit,
    { createdAt, targetUrl, ...shown }: CommitStatus,
  ): JsonObject & { readonly url: string } {
    const url = `${this.repoApi(repo)}/statuses/${sha}`
    const avatar_url = this.user(OWNER)['avatar_url']
    const node_id = nodeId('StatusContext', shown.id)
    const times = { created_at: createdAt, updated_at: createdAt }
    return { url, avatar_url, node_id, ...shown, target_url: targetUrl, ...times }
  }

  /** @see https://docs.github.com/rest/checks/runs#get-a-check-run */
  checkRun(check: CheckSuite): JsonObject {
    const { runId: id, suiteId, push, result } = check
    return {
      ...this.#like('CheckRun', id, 'check_run.completed', 'check_run', push.repo),
      head_sha: push.sha,
      details_url: `${this.web}/${push.repo}/runs/${id}`,
      name: 'test',
      started_at: push.createdAt,
      completed_at: result?.completedAt ?? null,
      ...this.#checked(check),
      check_suite: { id: suiteId },
    }
  }

  /** Installation of an App on all repositories, without the App's own fields. */
  installation(id: number): JsonObject {
    const account = this.user(OWNER)
    return {
      ...this.#like('IntegrationInstallation', id, 'installation.created', 'installation', DEMO),
      account,
      target_id: account['id'],
      repository_selection: 'all',
    }
  }

  /** Payload of `issue_comment`: `edited` if there was another text `before`, else `created`. */
  commentEvent(issue: Issue, comment: StoredComment, before?: string): JsonObject {
    return {
      action: before === undefined ? 'created' : 'edited',
      ...(before !== undefined && { changes: { body: { from: before } } }),
      issue: this.issue(issue),
      comment: this.comment(issue, comment),
      ...this.context(issue.repo),
    }
  }

  /** Payload of `pull_request`. `more` has the fields that are specific to the action. */
  pullEvent(action: 'closed' | 'synchronize', issue: PullIssue, more: JsonObject = {}): JsonObject {
    const { number, repo } = issue
    return { action, number, pull_request: this.pull(issue), ...more, ...this.context(repo) }
  }

  /** @see https://docs.github.com/webhooks/webhook-events-and-payloads#push */
  pushEvent({ repo, createdAt, branch, before, sha, message, others }: Push): JsonObject {
    const pusher = { name: OWNER, email: `${OWNER}@example.com` }
    const commits = [...others, { sha, message }].map((each) => {
      const example = this.#example('push', 'head_commit', repo, {
        '6113728f27ae82c7b1a177c8d03f9e96e0adf246': each.sha,
      })
      return { ...example, message: each.message, timestamp: createdAt }
    })
    const { repository, sender } = this.context(repo)
    const seconds = Math.floor(Date.parse(createdAt) / 1000)
    const times = { created_at: seconds, pushed_at: seconds, stargazers: 0, master_branch: 'main' }
    return {
      ref: `refs/heads/${branch}`,
      before,
      after: sha,
      repository: { ...repository, ...times, owner: { ...sender, ...pusher } },
      pusher,
      sender,
      created: false,
      deleted: false,
      forced: false,
      base_ref: null,
      compare: `${this.web}/${repo}/compare/${before.slice(0, 12)}...${sha.slice(0, 12)}`,
      commits,
      head_commit: commits.at(-1) ?? null,
    }
  }

  /** Payload of `check_run`, `completed`. */
  checkRunEvent(check: CheckSuite): JsonObject {
    const suite = this.#suite(check, 'check_run.completed', 'check_run.check_suite')
    const check_run = { ...this.checkRun(check), check_suite: suite }
    return { action: 'completed', check_run, ...this.context(check.push.repo) }
  }

  /** Payload of `check_suite`, `completed`. */
  checkSuiteEvent(check: CheckSuite): JsonObject {
    const { repo, sha, message, createdAt: timestamp } = check.push
    const suite = this.#suite(check, 'check_suite.completed', 'check_suite')
    const head = this.#example('check_suite.completed', 'check_suite.head_commit', repo)
    const check_suite = { ...suite, head_commit: { ...head, id: sha, message, timestamp } }
    return { action: 'completed', check_suite, ...this.context(repo) }
  }

  /** @see https://docs.github.com/webhooks/webhook-events-and-payloads#status */
  statusEvent(on: Commit, status: CommitStatus): JsonObject {
    const { repo, sha } = on
    const { url: _, node_id: __, ...fields } = this.status(on, status)
    const commit = {
      sha,
      url: `${this.repoApi(repo)}/commits/${sha}`,
      html_url: `${this.web}/${repo}/commit/${sha}`,
    }
    return { ...fields, sha, name: repo, commit, branches: [], ...this.context(repo) }
  }

  /** Last fields of the payloads of a repository. */
  context(repo: string): { readonly repository: JsonObject; readonly sender: JsonObject } {
    return { repository: this.repository(repo), sender: this.user(OWNER) }
  }

  /**
   * Suite of a check (https://docs.github.com/rest/checks/suites#get-a-check-suite), in the form that it has in an
   * event's example.
   */
  #suite(check: CheckSuite, event: string, at: string): JsonObject {
    const { suiteId: id, push, result } = check
    return {
      ...this.#like('CheckSuite', id, event, at, push.repo),
      head_branch: push.branch,
      head_sha: push.sha,
      before: push.before,
      after: push.sha,
      ...this.#checked(check),
      created_at: push.createdAt,
      updated_at: result?.completedAt ?? push.createdAt,
    }
  }

  /** Common fields of a check run and its suite. */
  #checked({ push, result }: CheckSuite): JsonObject {
    const { repo: fullName, branch, sha } = push
    const { id, name } = this.#state.repo(fullName)
    const repo = { id, url: this.repoApi(fullName), name }
    const pulls = this.#state.pullsFrom(fullName, branch).filter(({ pull }) => pull.head.sha === sha)
    const app = this.#like('App', ACTIONS_ID, 'check_run.completed', 'check_run.app', fullName, {
      'octocoders-linter': 'github-actions',
      'https://octocoders.io': 'https://help.github.com/en/actions',
    })
    return {
      status: result ? 'completed' : 'in_progress',
      conclusion: result?.conclusion ?? null,
      app: { ...app, name: 'GitHub Actions', owner: this.user(OWNER) },
      pull_requests: pulls.map(({ number, pull: { id, head, base } }) => ({
        url: `${this.repoApi(fullName)}/pulls/${number}`,
        id,
        number,
        head: { ...head, repo },
        base: { ...base, repo },
      })),
    }
  }

  /** Common fields of an issue and a pull request. */
  #conversation({ number, title, body, user, locked, createdAt, closedAt, commentCount }: Issue): JsonObject {
    return {
      number,
      title,
      user: this.user(user),
      body,
      labels: [],
      state: closedAt ? 'closed' : 'open',
      locked,
      assignee: null,
      assignees: [],
      milestone: null,
      comments: commentCount,
      created_at: createdAt,
      updated_at: closedAt ?? createdAt,
      closed_at: closedAt,
      author_association: associationOf(user),
      active_lock_reason: locked ? 'too heated' : null,
    }
  }

  /** Counts of each reaction. `url` is the address of the issue or comment. */
  #reactions(subject: ReactionSubject, url: string): JsonObject {
    const all = this.#state.reactionsTo(subject)
    const counts = REACTIONS.map((content): [string, number] => [
      content,
      all.filter((reaction) => reaction.content === content).length,
    ])
    return { url: `${url}/reactions`, total_count: all.length, ...Object.fromEntries(counts) }
  }

  /** Copies an object of an example, with its own id, also in addresses. */
  #like(kind: string, id: number, event: string, at: string, repo: string, swaps: Swaps = {}): JsonObject {
    const ids = { [`/${String(partOf(event, at).id)}`]: `/${id}` }
    return { ...this.#example(event, at, repo, { ...ids, ...swaps }), id, node_id: nodeId(kind, id) }
  }

  /**
   * Copies a part of an example, with this host's addresses and this repository instead of Codertocat/Hello-World.
   * `more` has further names to replace in every text. The caller overrides every field that the sandbox's state has a
   * value for.
   */
  #example(event: string, at: string, repo: string, more: Swaps = {}): JsonObject {
    const { host, hostname } = new URL(this.web)
    const swaps: Swaps = {
      'https://api.github.com': this.api,
      'https://github.com': this.web,
      'git://github.com': `git://${host}`,
      'git@github.com': `git@${hostname}`,
      '21031067+Codertocat@users.noreply.github.com': `${OWNER}@example.com`,
      Codertocat: OWNER,
      'Hello-World': this.#state.repo(repo).name,
      ...more,
    }
    const names = Object.keys(swaps).map((name) => name.replaceAll(/[^\w/]/g, String.raw`\$&`))
    const { text } = partOf(event, at)
    const value: JsonObject = JSON.parse(
      text.replaceAll(new RegExp(names.join('|'), 'g'), (name) => swaps[name] ?? name),
    )
    return value
  }
}

function associationOf(login: string): 'OWNER' | 'CONTRIBUTOR' {
  return login === OWNER ? 'OWNER' : 'CONTRIBUTOR'
}
