import { probeDelay } from '../base/backoff.js'
import { Disposal } from '../base/disposal.js'
import { toRelayError } from '../base/errors.js'
import { systemClock } from '../base/time.js'
import { sendOnce as sendOverNetwork } from '../net/send-once.js'
import { openChannel } from './channel.js'
import { type Listener, openListener } from './listener.js'
import { limitsOf, type TunnelOptions } from './options.js'
import { type ConnectionEnd, createReconnect } from './reconnect.js'
import { createStatus } from './state.js'
import { pause } from './watchdog.js'

const SECOND = 1000

/**
 * Listens on a channel and passes its deliveries to the intake, until it is disposed of. Whenever a connection ends or falls
 * silent, opens another one, at once and then after 1, 2, 4 … 60 s ±20 %. What the old one still delivers counts too.
 */
export function openTunnel(options: TunnelOptions): AsyncDisposable {
  const stop = new AbortController()
  const running = run(options, stop.signal)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

async function run(options: TunnelOptions, signal: AbortSignal): Promise<void> {
  const { clock = systemClock, delay = (failures) => probeDelay(failures, Math.random) } = options
  const { sendOnce = sendOverNetwork, store } = options
  const limits = limitsOf(options)
  const status = createStatus(clock, options.onStatus)
  const reconnect = createReconnect(delay)
  await using closing = new Disposal()
  const open = async (): Promise<Listener> => {
    const url = await openChannel(options.address, { store, sendOnce, signal })
    status.change({ url })
    return closing.use(await openListener({ url, options, limits, status, sendOnce, clock, delay, signal }))
  }
  let listener: Listener | undefined
  const connect = async (): Promise<ConnectionEnd> => {
    try {
      listener ??= await open()
      return await listener.connect()
    } catch (thrown) {
      const { message: reason, retryAfter = 0 } = toRelayError(thrown)
      return { reason, opened: false, steady: false, retryAfter: retryAfter * SECOND }
    }
  }
  for (;;) {
    const end = await connect()
    if (signal.aborted) return
    const { attempt, ms } = reconnect(end)
    status.change({ state: 'waiting', why: end.reason, attempt, retryAt: clock() + ms })
    await pause(ms, { clock, tick: limits.tick, signal })
    if (signal.aborted) return
  }
}
