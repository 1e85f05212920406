import type { Scene } from '../providers/template.js'
import { context } from './payloads.js'
import { commentResource, issueResource } from './resources/issue.js'
import { pullResource } from './resources/pull.js'
import { View } from './resources/view.js'
import { DEMO, OWNER } from './seed.js'
import { SandboxState, timestamp } from './state.js'

/** Scene for payload templates: the sandbox's repository with github.com's addresses, created at `now`. */
export function createScene(now: number): Scene {
  const state = new SandboxState(() => now)
  const [issue, withPull] = [state.issue(DEMO, 1), state.issue(DEMO, 2)]
  if (!issue || !withPull?.pull) throw new Error('unreachable: the seed has both')
  const { pull } = withPull
  const view = new PublicView(state, () => 'https://github.com')
  const at = timestamp(now)
  const closedAt = (closed: boolean): string | null => (closed ? at : null)
  return {
    at,
    context: context(view, DEMO, OWNER),
    issue: ({ closed = false, comments = 0 } = {}) =>
      issueResource(view, { ...issue, closedAt: closedAt(closed), commentCount: comments }),
    comment: (id, body) =>
      commentResource(view, issue, {
        id,
        repo: DEMO,
        issueNumber: 1,
        user: OWNER,
        body,
        createdAt: at,
        updatedAt: at,
      }),
    pull: ({ closed = false } = {}) => pullResource(view, { ...withPull, closedAt: closedAt(closed) }, pull),
  }
}

class PublicView extends View {
  override get api(): string {
    return 'https://api.github.com'
  }
}
