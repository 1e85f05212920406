import { aborted, onAbort, onSleep, probeDelay, sleep } from '../base/wait.js'
import { type ErrorKind, type RelayError, toRelayError } from '../base/errors.js'
import type { Limits } from '../base/seams.js'
import { catchUp } from '../codehost/catch-up.js'
import { wokenText } from '../codehost/hooks.js'
import type { DeliveryLog } from '../codehost/host.js'
import type { Core } from '../core.js'
import type { CatchingUp } from '../events/hook-event.js'
import type { PayloadAddress } from './tunnel.js'

/** A webhook that leads to this relay while it runs. */
interface Webhook {
  /** Name of its repository or App, for messages. */
  readonly name: string
  /**
   * Registers the webhook and reports that. Resolves to the code host's log of its deliveries, or to undefined if there
   * is nothing to catch up from.
   */
  readonly make: () => Promise<DeliveryLog | undefined>
  /** Called for each failure of `make` that differs from the one before. `retries` is true if it is tried again. */
  readonly onFailure: (error: RelayError, retries: boolean) => void
  readonly onChange: (state: CatchingUp) => void
  /** Adds the next step for a person to an error of reading the log. */
  readonly explain: (error: RelayError) => unknown
}

/** Parts that keep a webhook. */
export interface WebhookParts {
  readonly core: Core
  /** Address that the code host sends deliveries to. */
  readonly address: PayloadAddress
  readonly stop: AbortSignal
}

/** Interval at which the clock is checked for sleep of the machine. Milliseconds. */
const LOOK_MS = 10_000
/** Shortest sleep of the machine after which missed deliveries are looked for. Milliseconds. */
const GAP_MS = 60_000

/**
 * Keeps a webhook registered, and catches up now and whenever deliveries may have been missed, until `stop` aborts.
 * Registers it again when the code host's secret changes. Does not reject.
 */
export async function keepWebhook(hook: Webhook, parts: WebhookParts): Promise<void> {
  const { core, stop } = parts
  const { events, host, limits } = core
  let replaced = new AbortController()
  using _ = events.subscribe((event) => {
    if (event.type === 'settings' && event.reloaded.changed.includes(host.source)) replaced.abort()
  })
  while (!stop.aborted) {
    replaced = new AbortController()
    const own = new AbortController()
    const ends = [onAbort(stop, () => own.abort()), onAbort(replaced.signal, () => own.abort())]
    const deliveries = await keepTrying(hook.make, hook.onFailure, own.signal, limits)
    if (deliveries) await keepCaughtUp(hook, deliveries, { ...parts, stop: own.signal })
    else await aborted(own.signal)
    for (const end of ends) end()
  }
}

/** Catches up from a log now and whenever deliveries may have been missed, until `stop` aborts. Does not reject. */
async function keepCaughtUp(hook: Webhook, deliveries: DeliveryLog, parts: WebhookParts): Promise<void> {
  const { name, onChange } = hook
  const { address, core, stop } = parts
  const { journal, host, database, limits, log } = core
  let again = new AbortController()
  const missed = (): void => again.abort()
  const ends = [address.onBack(missed), onSleep(missed, { every: LOOK_MS, gap: GAP_MS })]
  const onFailure = (error: RelayError, retries: boolean): void => {
    const shown = retries ? error : toRelayError(hook.explain(error))
    onChange({ state: 'not caught up', error: shown, retries })
  }
  const catchUpOnce = async (): Promise<void> => {
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
      onWoken: () => log.info(`hook of ${name}: ${wokenText(host)}`),
      onWait: (why, ms) =>
        log.info(`catching up with ${name} continues in ${Math.ceil(ms / 1000)} s: ${why}`),
    })
    onChange({ state: 'caught up', result })
  }
  while (!stop.aborted) {
    await keepTrying(catchUpOnce, onFailure, stop, limits)
    await Promise.race([aborted(again.signal), aborted(stop)])
    again = new AbortController()
  }
  for (const end of ends) end()
}

/** Failures that end by themselves. */
const PASSING: ReadonlySet<ErrorKind> = new Set([
  'provider_failed',
  'provider_timeout',
  'storage',
  'timed_out',
])

/** Tries until it succeeds. Undefined if a person has to change something first, or `stop` aborts. Does not reject. */
async function keepTrying<T>(
  attempt: () => Promise<T>,
  onFailure: (error: RelayError, retries: boolean) => void,
  stop: AbortSignal,
  { signInLook }: Limits,
): Promise<T | undefined> {
  let reported = ''
  for (let failures = 1; !stop.aborted; failures++) {
    try {
      return await attempt()
    } catch (thrown) {
      const error = toRelayError(thrown)
      const { kind, retryAfter = 60 } = error
      // Retried often, since looking for a sign-in only reads the profile.
      const isSignIn = kind === 'unauthenticated' || kind === 'invalid_token'
      const passing = PASSING.has(kind) ? probeDelay(failures, Math.random) : undefined
      const delay = isSignIn ? signInLook : kind === 'rate_limited' ? retryAfter * 1000 : passing
      if (stop.aborted) break
      if (error.message !== reported) onFailure(error, delay !== undefined)
      reported = error.message
      if (delay === undefined) break
      await sleep(delay, { signal: stop }).catch(() => {})
    }
  }
  return undefined
}
