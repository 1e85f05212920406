import type { ServeOptions } from '../../../serve/serve.js'
import type { TunnelStatus } from '../../../tunnel/state.js'
import { attemptLine, attemptObject } from '../../output/attempt-line.js'
import { deliveryLine, deliveryObject } from '../../output/delivery-line.js'
import type { Output } from '../../output/output.js'
import { targetLine, targetObject } from './target-line.js'
import { tunnelLine, tunnelObject } from './tunnel-line.js'

type Listeners = Required<Pick<ServeOptions, 'onDelivery' | 'onAttempt' | 'onTarget' | 'onTunnel'>>

export interface LiveOutputOptions {
  readonly json: boolean
  readonly signal: AbortSignal
}

/** An attempt that ends within this time replaces the delivery's own line. */
const ATTEMPT_DELAY_MS = 1_000

/**
 * Prints what happens while `serve` runs: under `--json` every event as an object, otherwise a line for each delivery with its
 * attempt, and for each change of a target or the tunnel. A delivery that is not forwarded at once has a line of its own first.
 */
export function createLiveOutput(output: Output, { json, signal }: LiveOutputOptions): Listeners {
  const down = new Set<string>()
  let tunnel: TunnelStatus | undefined
  const delayed = new Map<number, NodeJS.Timeout>()
  const cancel = (n: number): void => {
    clearTimeout(delayed.get(n))
    delayed.delete(n)
  }
  signal.addEventListener('abort', () => {
    for (const n of delayed.keys()) cancel(n)
  })
  return {
    onDelivery(delivery, receipt) {
      if (json) output.object(deliveryObject(delivery, receipt))
      if (output.quiet) return
      const { n, targets, duplicate, late } = receipt
      const print = (): void => {
        delayed.delete(n)
        output.say(deliveryLine(delivery, receipt))
      }
      if (duplicate || late || targets.length === 0 || targets.some((id) => down.has(id))) print()
      else delayed.set(n, setTimeout(print, ATTEMPT_DELAY_MS))
    },
    onAttempt(event) {
      cancel(event.n)
      if (json) output.object(attemptObject(event))
      // A target that is down has its own line.
      const isProbe = down.has(event.route.id) && event.attempt.outcome === 'unreachable'
      if (!output.quiet && !isProbe) output.say(attemptLine(event))
    },
    onTarget(status) {
      if (status.state === 'up') down.delete(status.id)
      else down.add(status.id)
      if (json) output.object(targetObject(status))
      output.say(targetLine(status, Date.now()))
    },
    onTunnel(status) {
      if (json) output.object(tunnelObject(status))
      const line = tunnelLine(status, tunnel, Date.now())
      tunnel = status
      if (line !== undefined) output.say(line)
    },
  }
}
