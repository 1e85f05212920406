import { sleep } from '../base/abort.js'
import type { Log } from '../base/log.js'
import type { Check } from './resources/checks.js'
import type { Commit } from './commits.js'
import type { Webhooks } from './hooks/webhooks.js'
import { checkRunEvent, checkSuiteEvent } from './payloads.js'
import type { View } from './resources/view.js'

export interface CiParts {
  readonly view: View
  readonly webhooks: Webhooks
  readonly log: Log
  /** Milliseconds that a check takes. */
  readonly duration: number
}

/**
 * Continuous integration of the sandbox: checks each pushed commit with one run, `test`. It fails when the commit's message has
 * the word `fail`, and otherwise succeeds.
 */
export class Ci {
  readonly #parts: CiParts
  readonly #stopped = new AbortController()
  readonly #running = new Set<Promise<void>>()

  constructor(parts: CiParts) {
    this.#parts = parts
  }

  /** Starts the check of a commit, and sends its events when it has completed. */
  start(commit: Commit): void {
    const { state } = this.#parts.view
    const check: Check = {
      suiteId: state.newId(),
      runId: state.newId(),
      name: 'test',
      branch: commit.branch,
      before: commit.before,
      sha: commit.sha,
      message: commit.message,
      status: 'in_progress',
      conclusion: null,
      startedAt: commit.createdAt,
      completedAt: null,
      pulls: pullsOf(this.#parts.view, commit),
    }
    state.commits.setCheck(commit.repo, check)
    const run = this.#run(commit, check).finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  /** Resolves when every check so far has completed. */
  async idle(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Abandons running checks. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.idle()
  }

  async #run(commit: Commit, check: Check): Promise<void> {
    const { repo, message, user } = commit
    const { view, webhooks, log, duration } = this.#parts
    const { signal } = this.#stopped
    try {
      await sleep(duration, { signal })
      const conclusion = /\bfail\b/i.test(message) ? 'failure' : 'success'
      const completedAt = view.state.now()
      const pulls = pullsOf(view, commit)
      const completed: Check = { ...check, status: 'completed', conclusion, completedAt, pulls }
      view.state.commits.setCheck(repo, completed)
      webhooks.publish('check_run', repo, () => checkRunEvent(view, repo, user, completed))
      webhooks.publish('check_suite', repo, () => checkSuiteEvent(view, repo, user, completed))
    } catch (error) {
      if (!signal.aborted) log.error('The sandbox failed to check a commit', error)
    }
  }
}

/** The open pull requests that the commit is the head of. */
function pullsOf({ state }: View, { repo, branch, sha }: Commit): Check['pulls'] {
  return state
    .pullsFrom(repo, branch)
    .filter(({ pull }) => pull.head.sha === sha)
    .map(({ number, pull: { id, head, base } }) => ({ id, number, head, base }))
}
