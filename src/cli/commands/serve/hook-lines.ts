import { type HookEvent, sourceOf } from '../../../serve/hooks.js'
import { caughtUpText, failedObject } from '../../output/caught-up.js'
import { appHookText, hookStateText } from '../../output/hook-text.js'

/** Whether the user has to know, also under `--quiet`. */
export function isProblem(event: HookEvent): boolean {
  if (event.state === 'caught up') return event.result.failed.length > 0
  return ['failed', 'left', 'not caught up'].includes(event.state)
}

/** What happened to a hook, as a line. */
export function hookText(event: HookEvent): string {
  const source = sourceOf(event)
  switch (event.state) {
    case 'ready':
      return hookStateText(source, event.hook)
    case 'leads here':
      return appHookText(source, event)
    case 'missing':
      return `catching up with ${source}: ${event.count} missing`
    case 'caught up':
      return caughtUpText(source, event.result)
    case 'removed':
      return `hook of ${source} removed`
    case 'kept':
      return `the hook of ${source} stays, so that --catch-up gets what is sent meanwhile. Remove it with relay hook remove ${source}`
    case 'failed': {
      const what = 'app' in event ? `the webhook of ${source} does not lead here` : `no hook of ${source}`
      return `${what}${event.retries ? ' yet' : ''}: ${event.error.message}`
    }
    case 'left':
      return `the hook of ${source} could not be removed: ${event.error.message}. The next serve --hook uses it again, and relay hook remove ${source} removes it`
    case 'not caught up':
      return `could not catch up with ${source}${event.retries ? ' yet' : ''}: ${event.error.message}`
  }
}

/** The same for a program. */
export function hookObject(event: HookEvent): Record<string, unknown> {
  const source = 'app' in event ? { app: event.app } : { repo: event.repo }
  const common = { type: 'hook', ...source, state: event.state }
  switch (event.state) {
    case 'ready': {
      const { hook, created, repaired, permanent } = event.hook
      return { ...common, id: hook.id, url: hook.url, created, repaired, permanent }
    }
    case 'leads here':
      return { ...common, url: event.url, repaired: event.repaired }
    case 'missing':
      return { ...common, missing: event.count }
    case 'caught up': {
      const { missing, arrived, failed } = event.result
      return { ...common, missing, arrived, failed: failed.map(failedObject) }
    }
    default:
      return 'url' in event ? { ...common, url: event.url } : { ...common, error: event.error.message }
  }
}
