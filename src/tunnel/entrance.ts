import type { Log } from '../base/log.js'
import { createSparing } from '../base/sparing.js'
import type { Queue } from './queue.js'

export interface Entrance {
  readonly onMessage: (text: string) => void
  readonly onTooLarge: () => void
}

/** Where messages come in, or are dropped and said to be. */
export function createEntrance(queue: Queue, log: Log): Entrance {
  const sparingly = createSparing((count) => log.warn(`the tunnel dropped another ${count} messages`))
  return {
    onMessage: (text) => {
      if (!queue.push(text))
        sparingly(() =>
          log.warn('the tunnel dropped a message: too many wait; those that came first are kept'),
        )
    },
    onTooLarge: () =>
      sparingly(() => log.warn('the tunnel dropped a message: it is larger than --max-body allows')),
  }
}
