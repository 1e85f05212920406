import type { Log } from '../base/log.js'
import { createLogThrottle } from '../base/log-throttle.js'
import type { Queue } from './queue.js'
import type { Received } from './smee.js'

export interface Ingress {
  readonly onMessage: (message: Received) => void
  readonly onTooLarge: () => void
}

const DROPPED = 'the tunnel dropped a message'

/** Entry point for messages: queues each, or drops it and logs why. */
export function createIngress(queue: Queue<Received>, log: Log): Ingress {
  const throttle = createLogThrottle(log)
  const drop = (reason: string): void => throttle(DROPPED, () => log.warn(`${DROPPED}: ${reason}`))
  return {
    onMessage: (message) => {
      if (!queue.push(message)) drop('its queue is full')
    },
    onTooLarge: () => drop('it is larger than --max-body allows'),
  }
}
