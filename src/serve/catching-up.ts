import { aborted, onSleep } from '../base/wait.js'
import { type RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { type CaughtUp, catchUp } from '../codehost/catch-up.js'
import type { DeliveryLog } from '../codehost/host.js'
import type { Relay } from '../relay.js'
import type { PayloadAddress } from './tunnel.js'
import { keepTrying } from './trying.js'

/** How far it is. */
export type CatchingUp =
  | { readonly state: 'missing'; readonly count: number }
  | { readonly state: 'caught up'; readonly result: CaughtUp }
  | { readonly state: 'not caught up'; readonly error: RelayError; readonly retries: boolean }

interface CatchingUpOptions {
  /** Whose log it is, in messages. */
  readonly name: string
  readonly deliveries: DeliveryLog
  readonly relay: Pick<Relay, 'journal' | 'host' | 'database' | 'limits'>
  readonly address: PayloadAddress
  readonly log: Log
  readonly stop: AbortSignal
  readonly onChange: (state: CatchingUp) => void
  /** The error of a call, with the next step for a person. */
  readonly explain: (error: RelayError) => unknown
}

/** Between two looks at the clock, in milliseconds. */
const LOOK_MS = 10_000
/** What may have been missed while the machine slept for a minute is worth a look into the log. Milliseconds. */
const GAP_MS = 60_000

/**
 * Catches up now, and whenever deliveries may have been missed, until `stop` aborts. What fails for a while is tried again. Does
 * not reject.
 */
export async function keepCatchingUp(options: CatchingUpOptions): Promise<void> {
  const { address, relay, stop, onChange, explain } = options
  let again = new AbortController()
  const missed = (): void => again.abort()
  const ends = [address.onBack(missed), onSleep(missed, { every: LOOK_MS, gap: GAP_MS })]
  while (!stop.aborted) {
    await keepTrying(() => catchUpOnce(options), { stop, onFailure, signInLook: relay.limits.signInLook })
    await Promise.race([aborted(again.signal), aborted(stop)])
    again = new AbortController()
  }
  for (const end of ends) end()

  function onFailure(error: RelayError, retries: boolean): void {
    onChange({ state: 'not caught up', error: retries ? error : toRelayError(explain(error)), retries })
  }
}

async function catchUpOnce(options: CatchingUpOptions): Promise<void> {
  const { name, deliveries, relay, log, stop, onChange } = options
  const { journal, host, database, limits } = relay
  const result = await catchUp({
    log: deliveries,
    name,
    host,
    journal,
    store: database.store,
    limits,
    signal: stop,
    onBusy: (text) => log.info(text),
    onProgress: (done, count) => done === 0 && count > 0 && onChange({ state: 'missing', count }),
    onWait: (why, ms) => log.info(`catching up with ${name} continues in ${Math.ceil(ms / 1000)} s: ${why}`),
  })
  onChange({ state: 'caught up', result })
}
