import { EventEmitter, once, setMaxListeners } from 'node:events'
import { RelayError } from '../base/errors.js'
import type { ServeOptions } from '../serve/serve.js'

/** Tells those who wait that a delivery came or was tried, and which were tried since they came. */
export interface Watch {
  readonly onDelivery: NonNullable<ServeOptions['onDelivery']>
  readonly onAttempt: NonNullable<ServeOptions['onAttempt']>
  /** Whether this target was tried with the entry since it came last. */
  isTried(n: number, target: string): boolean
  /** Resolves at the next delivery or attempt. @throws AbortError when `signal` aborts first; RelayError `cancelled`. */
  next(signal: AbortSignal): Promise<void>
  /** Nothing more comes: who waits now waits in vain. */
  end(): void
}

export function createWatch(): Watch {
  const changes = new EventEmitter()
  // A test may wait for many things at once.
  setMaxListeners(0, changes)
  const tried = new Set<string>()
  const key = (n: number, target: string): string => `${n} ${target}`
  return {
    onDelivery(_, { n, targets }) {
      for (const target of targets) tried.delete(key(n, target))
      changes.emit('change')
    },
    onAttempt({ n, attempt }) {
      tried.add(key(n, attempt.target))
      changes.emit('change')
    },
    isTried: (n, target) => tried.has(key(n, target)),
    async next(signal) {
      await once(changes, 'change', { signal })
    },
    end() {
      // Without anybody who waits, it would be thrown here.
      if (changes.listenerCount('error') > 0)
        changes.emit(
          'error',
          new RelayError('cancelled', 'The relay was stopped, and this still waited for it'),
        )
    },
  }
}
