import { sleep } from '../base/abort.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Dispatcher } from '../dispatch/dispatcher.js'
import { sweep } from '../journal/retention.js'
import type { Database } from '../store/database.js'

export interface UpkeepParts {
  readonly database: Database
  readonly dispatcher: Pick<Dispatcher, 'start'>
  readonly retention: Pick<Settings, 'keep' | 'keepMax'>
  readonly clock: Clock
  readonly log: Log
}

/** One minute: nobody waits for what is done here. */
const EVERY_MS = 60_000

/**
 * Does every minute what nobody asks for: removes expired records and old deliveries; and once, looks whether another
 * process of the profile, that was just ending, left deliveries to hand on.
 */
export function startUpkeep({ database, dispatcher, retention, clock, log }: UpkeepParts): AsyncDisposable {
  const stop = new AbortController()
  const { signal } = stop
  const carefully = async (work: () => unknown): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.error(toRelayError(error).message, error)
    }
  }
  let rounds = 0
  const stopped = (async () => {
    while (!signal.aborted) {
      // The first one tells at once of a keychain that cannot be used.
      await carefully(() => database.store.sweep())
      await carefully(() => sweep(database, { ...retention, now: clock(), signal }))
      await sleep(EVERY_MS, { signal }).catch(() => {})
      // By then another process, that was ending when this one began, has ended.
      if (!signal.aborted && rounds++ < 1) await carefully(() => dispatcher.start())
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await stopped
    },
  }
}
