import type { ServeOptions } from '../serve/serve.js'
import type { TunnelStatus } from '../tunnel/state.js'
import { attemptLine, attemptObject } from './attempt-line.js'
import { deliveryLine, deliveryObject } from './delivery-line.js'
import type { Output } from './output.js'
import { targetLine, targetObject } from './target-line.js'
import { tunnelLine, tunnelObject } from './tunnel-line.js'

type Show = Required<Pick<ServeOptions, 'onDelivery' | 'onAttempt' | 'onTarget' | 'onTunnel'>>

export interface ShowOptions {
  readonly json: boolean
  readonly signal: AbortSignal
}

/** An attempt that ends within this many milliseconds tells of the delivery in its own line. */
const SOON_MS = 1_000

/**
 * What `serve` shows while it runs: for programs an object of everything, for people a line of each delivery, where it
 * went, and how the targets are. A delivery that is handed on at once has one line, one that waits has its own first.
 */
export function createShow(output: Output, { json, signal }: ShowOptions): Show {
  const { paint } = output
  const down = new Set<string>()
  let tunnel: TunnelStatus | undefined
  const awaited = new Map<number, NodeJS.Timeout>()
  const endWait = (n: number): void => {
    clearTimeout(awaited.get(n))
    awaited.delete(n)
  }
  signal.addEventListener('abort', () => {
    for (const n of awaited.keys()) endWait(n)
  })
  return {
    onDelivery(delivery, receipt) {
      if (json) output.object(deliveryObject(delivery, receipt))
      if (output.quiet) return
      const { n, targets, duplicate } = receipt
      const tell = (): void => {
        awaited.delete(n)
        output.say(deliveryLine(delivery, receipt, paint))
      }
      if (duplicate || targets.length === 0 || targets.some((id) => down.has(id))) tell()
      else awaited.set(n, setTimeout(tell, SOON_MS))
    },
    onAttempt(event) {
      endWait(event.n)
      if (json) output.object(attemptObject(event))
      if (!output.quiet) output.say(attemptLine(event, paint))
    },
    onTarget(status) {
      if (status.state === 'up') down.delete(status.id)
      else down.add(status.id)
      if (json) output.object(targetObject(status))
      output.say(targetLine(status, Date.now(), paint))
    },
    onTunnel(status) {
      if (json) output.object(tunnelObject(status))
      const line = tunnelLine(status, tunnel, Date.now(), paint)
      tunnel = status
      if (line !== undefined) output.say(line)
    },
  }
}
