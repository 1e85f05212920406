import { aborted } from '../../../base/abort.js'
import { createLogThrottle } from '../../../base/log-throttle.js'
import { NEW_TUNNEL } from '../../../base/settings.js'
import { type Routing, shortNames } from '../../../dispatch/routes.js'
import type { ServeOptions } from '../../../serve/serve.js'
import type { TunnelStatus } from '../../../tunnel/tunnel.js'
import { attemptObject } from '../../output/attempt-line.js'
import { deliveryObject } from '../../output/delivery-line.js'
import type { Feed } from '../../output/feed.js'
import type { Output } from '../../output/output.js'
import { createTextLines } from './event-lines.js'
import { hookObject, isProblem } from './hook-lines.js'
import { createLoggedEvents } from './logged-events.js'
import { targetObject } from './target-lines.js'
import { tunnelObject } from './tunnel-line.js'

type Listeners = Required<Pick<ServeOptions, 'onDelivery' | 'onAttempt' | 'onTarget' | 'onTunnel' | 'onHook'>>
type Routes = Pick<Routing, 'routes'>

/** What happens while `serve` runs, as it is printed. */
export interface LiveOutput extends Listeners {
  /** Names the targets from now on. */
  setRoutes(routes: Routes): void
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
  /**
   * Waits for the tunnel's payload URL, if `tunnel` is a server where relay creates a channel: some seconds, or until `stopped`. From then on `tunnelUrl` names it.
   */
  payloadUrl(tunnel: string | undefined, stopped: Promise<void>): Promise<void>
  readonly tunnelUrl: () => string | undefined
}

export interface LiveOutputOptions {
  readonly json: boolean
  readonly routes: Routes
  readonly feed: Pick<Feed, 'add'>
}

/** How long the banner waits for a new channel: creating one takes about half a second. Milliseconds. */
const TUNNEL_LIMIT_MS = 3000

/**
 * Prints what happens while `serve` runs: on standard error as lines, or as JSON with `--log-format json`; and under `--json` every
 * event as an object on standard output.
 */
export function createLiveOutput(output: Output, { json, routes, feed }: LiveOutputOptions): LiveOutput {
  let names = shortNames(routes.routes)
  const nameOf = (id: string): string => names.get(id) ?? shortNames([{ id }]).get(id) ?? id
  const lines = output.jsonLog
    ? createLoggedEvents(output.jsonLog, { routes, nameOf })
    : createTextLines({ routes, nameOf, feed, log: output.timedLog })
  let tunnel: TunnelStatus | undefined
  const connected = new AbortController()
  const throttle = createLogThrottle(output.timedLog)
  return {
    nameOf,
    tunnelUrl: () => tunnel?.url ?? undefined,
    async payloadUrl(address, stopped) {
      if (address === undefined || (address !== NEW_TUNNEL && new URL(address).pathname !== '/')) return
      const limit = AbortSignal.timeout(TUNNEL_LIMIT_MS)
      await Promise.race([stopped, aborted(connected.signal), aborted(limit)])
    },
    setRoutes(next) {
      names = shortNames(next.routes)
      lines.setRoutes(next)
    },
    onDelivery(delivery, receipt) {
      if (json) output.object(deliveryObject(delivery, receipt))
      if (output.quiet) return
      const print = (): void => lines.delivery(delivery, receipt)
      // Anybody who knows the tunnel's channel can send copies.
      if (receipt.duplicate && receipt.targets.length === 0) throttle('a duplicate', print, 'info')
      else print()
    },
    onAttempt(event) {
      if (json) output.object(attemptObject(event))
      if (!output.quiet) lines.attempt(event)
    },
    onTarget(status) {
      if (json) output.object(targetObject(status))
      if (!output.quiet) lines.target(status)
    },
    onHook(event) {
      if (json) output.object(hookObject(event))
      if (!output.quiet || isProblem(event)) lines.hook(event)
    },
    onTunnel(status) {
      if (json) output.object(tunnelObject(status))
      if (!output.quiet) lines.tunnel(status, tunnel)
      tunnel = status
      if (status.url !== null) connected.abort()
    },
  }
}
