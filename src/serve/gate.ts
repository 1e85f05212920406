import type { DirectHandler, FetchHandler } from '../http/edge.js'
import type { Relay } from '../relay.js'

export interface Gate {
  readonly fetch: FetchHandler
  readonly direct: DirectHandler
  open(): void
}

/**
 * Lets requests in only once the profile is ours: one that comes before waits. Without it a second relay that finds
 * our row before we can prove it would take the profile over.
 */
export function createGate(relay: Pick<Relay, 'app' | 'direct'>): Gate {
  const pass: FetchHandler = (request, env) => relay.app.fetch(request, env)
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  let fetch: FetchHandler = async (request, env) => {
    await opened
    return pass(request, env)
  }
  let direct: DirectHandler = () => false
  return {
    fetch: (request, env) => fetch(request, env),
    direct: (incoming, outgoing, id) => direct(incoming, outgoing, id),
    open() {
      fetch = pass
      direct = relay.direct
      open()
    },
  }
}
