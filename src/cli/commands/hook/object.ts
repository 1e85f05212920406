import type { RepoHook } from '../../../codehost/host.js'

/** A hook, for a program. `ours`: it leads here. */
export function hookObject(hook: RepoHook, ours: boolean): Record<string, unknown> {
  const { id, url, active, contentType, events, hasSecret, lastResponse } = hook
  return {
    type: 'hook',
    id,
    url,
    ours,
    active,
    contentType,
    events,
    hasSecret: hasSecret ?? null,
    lastResponse: lastResponse ?? null,
  }
}
