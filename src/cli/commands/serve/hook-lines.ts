import type { HookEvent } from '../../../serve/hooks.js'
import { caughtUpText, failedObject } from '../../output/caught-up.js'
import { hookStateText } from '../../output/hook-text.js'

/** Whether the user has to know, also under `--quiet`. */
export function isProblem(event: HookEvent): boolean {
  if (event.state === 'caught up') return event.result.failed.length > 0
  return ['failed', 'left', 'not caught up'].includes(event.state)
}

/** What happened to a hook, as a line. */
export function hookText(event: HookEvent): string {
  const { repo, state } = event
  if (state === 'ready') return hookStateText(repo, event.hook)
  if (state === 'missing') return `catching up with ${repo}: ${event.count} missing`
  if (state === 'caught up') return caughtUpText(repo, event.result)
  if (state === 'removed') return `hook of ${repo} removed`
  if (state === 'kept')
    return `the hook of ${repo} stays, so that --catch-up gets what is sent meanwhile. Remove it with relay hook remove ${repo}`
  const why = event.error.message
  if (state === 'failed') return `no hook of ${repo}${event.retries ? ' yet' : ''}: ${why}`
  if (state === 'left')
    return `the hook of ${repo} could not be removed: ${why}. The next serve --hook uses it again, and relay hook remove ${repo} removes it`
  return `could not catch up with ${repo}: ${why}`
}

/** The same for a program. */
export function hookObject(event: HookEvent): Record<string, unknown> {
  const { repo, state } = event
  const common = { type: 'hook', repo, state }
  if (state === 'ready') {
    const { hook, created, repaired, found, permanent } = event.hook
    return { ...common, id: hook.id, url: hook.url, created, repaired, found, permanent }
  }
  if (state === 'failed') return { ...common, error: event.error.message, retries: event.retries }
  if (state === 'missing') return { ...common, missing: event.count }
  if (state === 'caught up') {
    const { missing, arrived, failed } = event.result
    return { ...common, missing, arrived, failed: failed.map(failedObject) }
  }
  return 'url' in event ? { ...common, url: event.url } : { ...common, error: event.error.message }
}
