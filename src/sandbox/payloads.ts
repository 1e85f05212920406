import { REACTIONS } from '../codehost/host.js'
import { memberOf } from '../codehost/events.js'
import { fixtureBody } from '../replay/fixture.js'
import { packagedFixture } from '../replay/load.js'
import { isObject } from '../json/parse.js'
import {
  type Check,
  type Comment,
  type Commit,
  type Issue,
  OWNER,
  type Pull,
  type PullIssue,
  type Reaction,
  type Repo,
  type State,
  type Status,
  type Subject,
} from './state.js'

export type Json = Readonly<Record<string, unknown>>

/** The account and the repository that GitHub's examples are about, and whose addresses they have. */
const EXAMPLE = { owner: 'Codertocat', name: 'Hello-World', issue: 1, pull: 2 }

/** Made-up hash of every commit's tree. */
const TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
/** The App that checks pushed commits. */
const ACTIONS = {
  id: 15368,
  node_id: nodeId('App', 15368),
  name: 'GitHub Actions',
  description: 'Automate your workflow from idea to production',
}

/** Parts of examples as JSON text, by event and place. */
const texts = new Map<string, string>()

/**
 * A part of GitHub's own example of an event, one of the packaged fixtures: `swaps` replaces each of its names in every text
 * and number. The caller overrides every field that the sandbox's state has a value for.
 */
function example(event: string, at: string, swaps: Readonly<Record<string, string | number>>): Json {
  const key = `${event} ${at}`
  let text = texts.get(key)
  if (text === undefined) {
    const payload: unknown = JSON.parse(Buffer.from(fixtureBody(packagedFixture('github', event))).toString())
    text = JSON.stringify(memberOf(payload, at))
    texts.set(key, text)
  }
  // Longer names first: a repository's has its owner's.
  const names = Object.keys(swaps).toSorted((a, b) => b.length - a.length)
  const pattern = new RegExp(names.map((name) => name.replaceAll(/[^\w/]/g, String.raw`\$&`)).join('|'), 'g')
  const value: unknown = JSON.parse(text.replaceAll(pattern, (name) => String(swaps[name])))
  if (!isObject(value)) throw new Error(`GitHub's example of ${event} has no ${at}`)
  return value
}

/** GitHub's opaque id of an object. */
export function nodeId(kind: string, id: number): string {
  return Buffer.from(`${kind.length.toString().padStart(2, '0')}:${kind}${id}`).toString('base64')
}

/** Path of an issue or pull request on the web site. */
export function webPath({ repo, number, pull }: Issue): string {
  return `/${repo}/${pull ? 'pull' : 'issues'}/${number}`
}

/** What the sandbox's state looks like over REST and in webhooks: GitHub's examples, with every live field replaced. */
export class Payloads {
  readonly #state: State
  readonly #url: () => string

  constructor(state: State, url: () => string) {
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
  user(login: string): Json {
    const { id, type } = this.#state.user(login)
    return {
      ...example('issues.opened', 'sender', { ...this.#addresses(), [EXAMPLE.owner]: login }),
      id,
      node_id: nodeId('User', id),
      avatar_url: `${this.web}/${login}.png`,
      type,
      user_view_type: 'public',
    }
  }

  /** @see https://docs.github.com/rest/repos/repos */
  repository(fullName: string): Json {
    const repo = this.#repo(fullName)
    const { issues } = this.#state
    const open = issues.filter((issue) => issue.repo === fullName && !issue.closedAt).length
    const none = { has_projects: false, has_downloads: false, has_wiki: false, has_pages: false }
    return {
      ...example('issue_comment.edited', 'repository', this.#swaps(fullName)),
      id: repo.id,
      node_id: nodeId('Repository', repo.id),
      owner: this.user(repo.owner),
      description: repo.description,
      created_at: repo.createdAt,
      updated_at: repo.createdAt,
      pushed_at: repo.createdAt,
      size: 1,
      has_issues: repo.hasIssues,
      ...none,
      has_discussions: false,
      allow_forking: true,
      open_issues_count: open,
      open_issues: open,
      default_branch: 'main',
    }
  }

  /** Issue, or a pull request as an issue (https://docs.github.com/rest/issues/issues). */
  issue(issue: Issue): Json {
    const { repo, pull } = issue
    const html = this.web + webPath(issue)
    const swaps = { [`issues/${EXAMPLE.issue}`]: `issues/${issue.number}` }
    const url = `${this.repoApi(repo)}/issues/${issue.number}`
    const links = {
      url: `${this.repoApi(repo)}/pulls/${issue.number}`,
      html_url: html,
      diff_url: `${html}.diff`,
      patch_url: `${html}.patch`,
      merged_at: pull?.merge?.mergedAt ?? null,
    }
    const { draft, ...fields } = example('issues.reopened', 'issue', { ...this.#swaps(repo), ...swaps })
    return {
      ...fields,
      html_url: html,
      id: issue.id,
      node_id: nodeId('Issue', issue.id),
      ...this.#conversation(issue),
      comments: issue.commentCount,
      reactions: this.#reactions({ kind: 'issue', id: issue.id }, url),
      state_reason: null,
      ...(pull && { draft, pull_request: links }),
    }
  }

  /** Comment on an issue or pull request (https://docs.github.com/rest/issues/comments). */
  comment(issue: Issue, comment: Comment): Json {
    const { repo, id, user } = comment
    const url = `${this.repoApi(repo)}/issues/comments/${id}`
    return {
      ...example('issue_comment.edited', 'comment', this.#swaps(repo)),
      url,
      html_url: `${this.web}${webPath(issue)}#issuecomment-${id}`,
      issue_url: `${this.repoApi(repo)}/issues/${issue.number}`,
      id,
      node_id: nodeId('IssueComment', id),
      user: this.user(user),
      created_at: comment.createdAt,
      updated_at: comment.updatedAt,
      author_association: this.#association(repo, user),
      body: comment.body,
      reactions: this.#reactions({ kind: 'comment', id }, url),
    }
  }

  /** @see https://docs.github.com/rest/pulls/pulls */
  pull(issue: PullIssue): Json {
    const { repo, number } = issue
    const { id, head, base, merge, mergeable } = issue.pull
    const swaps = {
      ...this.#swaps(repo),
      [`issues/${EXAMPLE.pull}`]: `issues/${number}`,
      [`pull/${EXAMPLE.pull}`]: `pull/${number}`,
      [`pulls/${EXAMPLE.pull}`]: `pulls/${number}`,
      // The head of the example.
      ec26c3e57ca3a959ca5aad62de7213c562f8c821: head.sha,
    }
    const isReviewed = (comment: Comment): boolean => comment.repo === repo && comment.issueNumber === number
    const owner = this.user(OWNER)
    const side = ({ ref, sha }: Pull['head']) => {
      return { label: `${OWNER}:${ref}`, ref, sha, user: owner, repo: this.repository(repo) }
    }
    return {
      ...example('pull_request.closed', 'pull_request', swaps),
      id,
      node_id: nodeId('PullRequest', id),
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
      comments: issue.commentCount,
      review_comments: this.#state.reviewComments.filter(isReviewed).length,
    }
  }

  /** @see https://docs.github.com/rest/reactions/reactions */
  reaction({ id, user, content, createdAt }: Reaction): Json {
    return { id, node_id: nodeId('Reaction', id), user: this.user(user), content, created_at: createdAt }
  }

  /** @see https://docs.github.com/rest/commits/statuses */
  status(status: Status): Json {
    const { id, state, description, context, createdAt } = status
    return {
      url: `${this.repoApi(status.repo)}/statuses/${status.sha}`,
      avatar_url: this.user(status.user)['avatar_url'],
      id,
      node_id: nodeId('StatusContext', id),
      state,
      description,
      target_url: status.targetUrl,
      context,
      created_at: createdAt,
      updated_at: createdAt,
    }
  }

  /** @see https://docs.github.com/rest/checks/runs#get-a-check-run */
  checkRun(check: Check): Json {
    const { runId: id, suiteId, commit, result } = check
    return {
      // The run of the example, in its addresses.
      ...example('check_run.completed', 'check_run', { ...this.#swaps(commit.repo), 128620228: id }),
      node_id: nodeId('CheckRun', id),
      head_sha: commit.sha,
      details_url: `${this.web}/${commit.repo}/runs/${id}`,
      name: 'test',
      started_at: commit.createdAt,
      completed_at: result?.completedAt ?? null,
      ...this.#checked(check),
      check_suite: { id: suiteId },
    }
  }

  /** Installation of an App on all repositories, without what is the App's. */
  installation(id: number): Json {
    const account = this.user(OWNER)
    return {
      // The installation of the example, in its addresses.
      ...example('installation.created', 'installation', { ...this.#addresses(), 957387: id }),
      account,
      target_id: account['id'],
      repository_selection: 'all',
    }
  }

  /** Payload of `issue_comment`, `created`; `edited` if the text was another before. */
  commentEvent(issue: Issue, comment: Comment, before?: string): Json {
    return {
      action: before === undefined ? 'created' : 'edited',
      ...(before !== undefined && { changes: { body: { from: before } } }),
      issue: this.issue(issue),
      comment: this.comment(issue, comment),
      ...this.context(issue.repo, comment.user),
    }
  }

  /** Payload of `pull_request`. `more` has the fields that only this action has. */
  pullEvent(action: 'closed' | 'synchronize', issue: PullIssue, sender: string, more: Json = {}): Json {
    const { number, repo } = issue
    return { action, number, pull_request: this.pull(issue), ...more, ...this.context(repo, sender) }
  }

  /** @see https://docs.github.com/webhooks/webhook-events-and-payloads#push */
  pushEvent({ repo, user, createdAt, branch, before, sha, message }: Commit): Json {
    const html = `${this.web}/${repo}`
    const pusher = { name: user, email: `${user}@example.com` }
    const author = { ...pusher, username: user }
    const commit = {
      id: sha,
      tree_id: TREE,
      distinct: true,
      message,
      timestamp: createdAt,
      url: `${html}/commit/${sha}`,
      author,
      committer: author,
      added: [],
      removed: [],
      modified: ['README.md'],
    }
    const seconds = Math.floor(Date.parse(createdAt) / 1000)
    const times = { created_at: seconds, pushed_at: seconds, stargazers: 0, master_branch: 'main' }
    return {
      ref: `refs/heads/${branch}`,
      before,
      after: sha,
      repository: { ...this.repository(repo), ...times, owner: { ...this.user(OWNER), ...pusher } },
      pusher,
      sender: this.user(user),
      created: false,
      deleted: false,
      forced: false,
      base_ref: null,
      compare: `${html}/compare/${before.slice(0, 12)}...${sha.slice(0, 12)}`,
      commits: [commit],
      head_commit: commit,
    }
  }

  /** Payload of `check_run`, `completed`. */
  checkRunEvent(check: Check): Json {
    const { repo, user } = check.commit
    const { latest_check_runs_count: _, check_runs_url: __, head_commit: ___, ...suite } = this.#suite(check)
    const run = { ...this.checkRun(check), check_suite: suite }
    return { action: 'completed', check_run: run, ...this.context(repo, user) }
  }

  /** Payload of `check_suite`, `completed`. */
  checkSuiteEvent(check: Check): Json {
    const { repo, user } = check.commit
    return { action: 'completed', check_suite: this.#suite(check), ...this.context(repo, user) }
  }

  /** @see https://docs.github.com/webhooks/webhook-events-and-payloads#status */
  statusEvent(status: Status): Json {
    const { repo, sha, user } = status
    const { url: _, node_id: __, ...fields } = this.status(status)
    const url = `${this.repoApi(repo)}/commits/${sha}`
    const commit = { sha, url, html_url: `${this.web}/${repo}/commit/${sha}` }
    return { ...fields, sha, name: repo, commit, branches: [], ...this.context(repo, user) }
  }

  /** Last fields of the payloads of a repository. */
  context(repo: string, sender: string): { readonly repository: Json; readonly sender: Json } {
    return { repository: this.repository(repo), sender: this.user(sender) }
  }

  /** @see https://docs.github.com/rest/checks/suites#get-a-check-suite */
  #suite(check: Check): Json {
    const { suiteId: id, commit, result } = check
    const author = { name: commit.user, email: `${commit.user}@example.com` }
    const { message, createdAt: timestamp } = commit
    return {
      // The suite of the example, in its addresses.
      ...example('check_suite.completed', 'check_suite', { ...this.#swaps(commit.repo), 118578147: id }),
      node_id: nodeId('CheckSuite', id),
      head_branch: commit.branch,
      head_sha: commit.sha,
      before: commit.before,
      after: commit.sha,
      ...this.#checked(check),
      created_at: timestamp,
      updated_at: result?.completedAt ?? timestamp,
      head_commit: { id: commit.sha, tree_id: TREE, message, timestamp, author, committer: author },
    }
  }

  /** What a check run and its suite have in common. */
  #checked({ commit, result }: Check): Json {
    const { repo: fullName, branch, sha } = commit
    const { id, name } = this.#repo(fullName)
    const repo = { id, url: this.repoApi(fullName), name }
    const pulls = this.#state.pullsFrom(fullName, branch).filter(({ pull }) => pull.head.sha === sha)
    const actions = example('check_run.completed', 'check_run.app', {
      ...this.#addresses(),
      'octocoders-linter': 'github-actions',
      'https://octocoders.io': 'https://help.github.com/en/actions',
    })
    return {
      status: result ? 'completed' : 'in_progress',
      conclusion: result?.conclusion ?? null,
      app: { ...actions, ...ACTIONS, owner: this.user(OWNER) },
      pull_requests: pulls.map(({ number, pull: { id, head, base } }) => ({
        url: `${this.repoApi(fullName)}/pulls/${number}`,
        id,
        number,
        head: { ...head, repo },
        base: { ...base, repo },
      })),
    }
  }

  /** What an issue and a pull request have in common. */
  #conversation({ repo, number, title, body, user, locked, createdAt, closedAt }: Issue): Json {
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
      created_at: createdAt,
      updated_at: closedAt ?? createdAt,
      closed_at: closedAt,
      author_association: this.#association(repo, user),
      active_lock_reason: locked ? 'too heated' : null,
    }
  }

  /** Counts per reaction. `url` is that of the issue or comment. */
  #reactions(subject: Subject, url: string): Json {
    const all = this.#state.reactionsTo(subject)
    const counts = REACTIONS.map((content): [string, number] => [
      content,
      all.filter((reaction) => reaction.content === content).length,
    ])
    return { url: `${url}/reactions`, total_count: all.length, ...Object.fromEntries(counts) }
  }

  #association(repo: string, login: string): 'OWNER' | 'CONTRIBUTOR' {
    return this.#repo(repo).owner === login ? 'OWNER' : 'CONTRIBUTOR'
  }

  #repo(fullName: string): Repo {
    const repo = this.#state.repos.find((each) => each.fullName === fullName)
    if (!repo) throw new Error(`the sandbox has no repository ${fullName}`)
    return repo
  }

  /** The addresses of this host, instead of the examples'. */
  #addresses(): Record<string, string> {
    const { host, hostname } = new URL(this.web)
    return {
      'https://api.github.com': this.api,
      'https://github.com': this.web,
      'git://github.com': `git://${host}`,
      'git@github.com': `git@${hostname}`,
    }
  }

  /** The addresses and the names of a repository, instead of the examples'. */
  #swaps(fullName: string): Record<string, string> {
    const { owner, name } = this.#repo(fullName)
    const names = {
      [`${EXAMPLE.owner}/${EXAMPLE.name}`]: fullName,
      [EXAMPLE.owner]: owner,
      [EXAMPLE.name]: name,
    }
    return { ...this.#addresses(), ...names }
  }
}
