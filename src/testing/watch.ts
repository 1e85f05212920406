import { EventEmitter, once, setMaxListeners } from 'node:events'
import { RelayError } from '../base/errors.js'
import type { ServeOptions } from '../serve/serve.js'

/** Signals deliveries and attempts to waiting tests, and records which targets were attempted. */
export interface Watch {
  readonly onDelivery: NonNullable<ServeOptions['onDelivery']>
  readonly onAttempt: NonNullable<ServeOptions['onAttempt']>
  /** Whether entry `n` was attempted at this target since it last arrived. */
  isAttempted(n: number, target: string): boolean
  /** Resolves at the next delivery or attempt. @throws AbortError when `signal` aborts first; RelayError `cancelled`. */
  next(signal: AbortSignal): Promise<void>
  /** Ends all waiting with RelayError `cancelled`: there are no more events. */
  end(): void
}

export function createWatch(): Watch {
  const changes = new EventEmitter()
  // A test may wait for any number of deliveries at once.
  setMaxListeners(0, changes)
  const attempted = new Set<string>()
  const key = (n: number, target: string): string => `${n} ${target}`
  return {
    onDelivery(_, { n, targets }) {
      for (const target of targets) attempted.delete(key(n, target))
      changes.emit('change')
    },
    onAttempt({ n, attempt }) {
      attempted.add(key(n, attempt.target))
      changes.emit('change')
    },
    isAttempted: (n, target) => attempted.has(key(n, target)),
    async next(signal) {
      await once(changes, 'change', { signal })
    },
    end() {
      // Without a listener, `error` would be thrown here.
      if (changes.listenerCount('error') > 0)
        changes.emit(
          'error',
          new RelayError('cancelled', 'The relay stopped while a test waited for a delivery'),
        )
    },
  }
}
