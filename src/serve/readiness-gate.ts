import type { FetchHandler } from '../http/edge.js'

export interface ReadinessGate {
  readonly fetch: FetchHandler
  /** Lets the waiting requests and all later ones through. */
  readonly open: () => void
}

/**
 * Makes requests wait until this process owns the profile. Otherwise a second relay could find the new instance record in
 * the store, get no proof for it from here yet, and take the profile over. Requests for the path `openPath` do not wait.
 */
export function createReadinessGate(fetch: FetchHandler, openPath: string): ReadinessGate {
  let open = (): void => {}
  let isOpen = false
  const opened = new Promise<void>((resolve) => (open = resolve))
  return {
    async fetch(request, env) {
      if (!isOpen && new URL(request.url).pathname !== openPath) await opened
      return fetch(request, env)
    },
    open() {
      isOpen = true
      open()
    },
  }
}
