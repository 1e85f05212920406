import type { Log } from '../../../base/log.js'
import type { AttemptEvent } from '../../../dispatch/dispatcher.js'
import type { TargetStatus } from '../../../dispatch/dispatcher.js'
import type { Routing } from '../../../dispatch/routes.js'
import type { Delivery, Receipt } from '../../../journal/types.js'
import type { HookEvent } from '../../../serve/hook-event.js'
import type { TunnelStatus } from '../../../tunnel/tunnel.js'
import type { Feed } from '../../output/feed.js'
import { wrapLine } from '../../output/line.js'
import { TIMED_INDENT } from '../../output/output.js'
import { createDeliveryLines } from './delivery-lines.js'
import { hookText, isProblem } from './hook-lines.js'
import { createTargetLines } from './target-lines.js'
import { tunnelLine } from './tunnel-line.js'

/** What happens while `serve` runs, on standard error. */
export interface EventLines {
  delivery(delivery: Delivery, receipt: Receipt): void
  attempt(event: AttemptEvent): void
  target(status: TargetStatus): void
  /** A change of the tunnel since `before`. */
  tunnel(status: TunnelStatus, before: TunnelStatus | undefined): void
  hook(event: HookEvent): void
  setRoutes(routes: Pick<Routing, 'routes'>): void
}

export interface EventLinesOptions {
  readonly routes: Pick<Routing, 'routes'>
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
}

interface TextOptions extends EventLinesOptions {
  readonly feed: Pick<Feed, 'add'>
  readonly log: Log
}

/** The lines for people: one for each delivery with all of its targets, and for each change of a target or the tunnel. */
export function createTextLines({ feed, log, routes, nameOf }: TextOptions): EventLines {
  const targets = createTargetLines(feed, nameOf)
  const deliveries = createDeliveryLines({ feed, nameOf, routes, stateOf: targets.stateOf })
  return {
    delivery: (delivery, receipt) => deliveries.received(delivery, receipt),
    attempt: (event) => deliveries.attempted(event, targets.attempted(event)),
    target: (status) => targets.changed(status, Date.now()),
    tunnel(status, before) {
      const line = tunnelLine(status, before, Date.now())
      if (line !== undefined) feed.add((width) => wrapLine(line, width, TIMED_INDENT), true)
    },
    hook: (event) => log[isProblem(event) ? 'warn' : 'info'](hookText(event)),
    setRoutes: (next) => deliveries.setRoutes(next),
  }
}
