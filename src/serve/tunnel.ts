import { toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Relay } from '../relay.js'
import { forgetStatus, keepStatus, type TunnelStatus } from '../tunnel/state.js'

export type OnTunnel = (status: TunnelStatus) => void

interface StartOptions {
  readonly clock?: Clock
  readonly log?: Log
  readonly onTunnel?: OnTunnel
}

/**
 * Has deliveries come in through a channel as well. How it stands is left in the store, where `relay doctor` looks. The
 * client is loaded only here.
 */
export async function startTunnel(
  { database, intake, provider }: Relay,
  { webhookSecrets: secrets, maxBody }: Settings,
  address: string,
  { log = silentLog, clock, onTunnel }: StartOptions,
): Promise<AsyncDisposable> {
  const { store } = database
  const { openTunnel } = await import('../tunnel/tunnel.js')
  let kept = Promise.resolve()
  const keep = async (write: () => Promise<void>): Promise<void> => {
    await kept
    await write().catch((error: unknown) => log.error(toRelayError(error).message, error))
  }
  const onStatus = (status: TunnelStatus): void => {
    onTunnel?.(status)
    kept = keep(() => keepStatus(store, process.pid, status))
  }
  const tunnel = openTunnel({ address, clock, intake, provider, secrets, maxBody, store, log, onStatus })
  return {
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]()
      await keep(() => forgetStatus(store))
    },
  }
}
