import { nodeId } from './node-id.js'
import type { Status, StatusState } from '../commits.js'
import { repositoryResource } from './repository.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** Status of a commit (https://docs.github.com/rest/commits/statuses). */
export function statusResource(view: View, status: Status) {
  return { ...simpleStatus(view, status), creator: userResource(view, status.user) }
}

/** Statuses of a commit as one; `page` is the part of them that is shown. */
export function combinedStatus(
  view: View,
  { repo, sha }: { repo: string; sha: string },
  all: readonly Status[],
  page: readonly Status[],
) {
  const url = `${view.repoApi(repo)}/commits/${sha}`
  return {
    state: combinedState(all.map(({ state }) => state)),
    statuses: page.map((status) => simpleStatus(view, status)),
    sha,
    total_count: all.length,
    repository: repositoryResource(view, repo),
    commit_url: url,
    url: `${url}/status`,
  }
}

/** GitHub's rule: a failure if there is one, else pending unless all of them, and at least one, succeeded. */
function combinedState(states: readonly StatusState[]): 'failure' | 'pending' | 'success' {
  if (states.some((state) => state === 'failure' || state === 'error')) return 'failure'
  return states.length > 0 && states.every((state) => state === 'success') ? 'success' : 'pending'
}

function simpleStatus(view: View, status: Status) {
  return {
    url: `${view.repoApi(status.repo)}/statuses/${status.sha}`,
    avatar_url: userResource(view, status.user).avatar_url,
    id: status.id,
    node_id: nodeId('StatusContext', status.id),
    state: status.state,
    description: status.description,
    target_url: status.targetUrl,
    context: status.context,
    created_at: status.createdAt,
    updated_at: status.createdAt,
  }
}
