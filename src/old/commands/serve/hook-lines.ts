import { type HookEvent, sourceOf } from '../../../serve/hook-event.js'
import { ASK_AGAIN, caughtUpText, failedObject } from '../../output/caught-up.js'
import { appHookText, hookStateText } from '../../output/hook-text.js'

/** Whether the user has to know, also under `--quiet`. */
export function isProblem(event: HookEvent): boolean {
  if (event.state === 'caught up') return event.result.failed.length > 0
  return ['failed', 'left', 'not caught up'].includes(event.state)
}

/** What happened to a hook, as a line. */
export function hookText(event: HookEvent): string {
  const { state } = event
  const source = sourceOf(event)
  if (state === 'ready') return hookStateText(source, event.hook)
  if (state === 'leads here') return appHookText(source, event)
  if (state === 'missing') return `catching up with ${source}: ${event.count} missing`
  if (state === 'caught up')
    return caughtUpText(source, event.result) + (isProblem(event) ? `. ${ASK_AGAIN}` : '')
  if (state === 'removed') return `hook of ${source} removed`
  if (state === 'kept')
    return `the hook of ${source} stays, so that --catch-up gets what is sent meanwhile. Remove it with relay hook remove ${source}`
  const why = event.error.message
  if (state === 'left')
    return `the hook of ${source} could not be removed: ${why}. The next serve --hook uses it again, and relay hook remove ${source} removes it`
  const yet = event.retries ? ' yet' : ''
  if (state === 'not caught up') return `could not catch up with ${source}${yet}: ${why}`
  const what = 'app' in event ? `the webhook of ${source} does not lead here` : `no hook of ${source}`
  return `${what}${yet}: ${why}`
}

/** The same for a program. */
export function hookObject(event: HookEvent): Record<string, unknown> {
  const { state } = event
  const common = { type: 'hook', ...('app' in event ? { app: event.app } : { repo: event.repo }), state }
  if (state === 'ready') {
    const { hook, created, repaired, found, permanent } = event.hook
    return { ...common, id: hook.id, url: hook.url, created, repaired, found, permanent }
  }
  if (state === 'failed' || state === 'not caught up')
    return { ...common, error: event.error.message, retries: event.retries }
  if (state === 'leads here') return { ...common, url: event.url, repaired: event.repaired }
  if (state === 'missing') return { ...common, missing: event.count }
  if (state === 'caught up') {
    const { missing, arrived, failed } = event.result
    return { ...common, missing, arrived, failed: failed.map(failedObject) }
  }
  return 'url' in event ? { ...common, url: event.url } : { ...common, error: event.error.message }
}
