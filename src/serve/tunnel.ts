import { toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Relay } from '../relay.js'
import { forgetStatus, keepStatus, type TunnelStatus } from '../tunnel/state.js'

export type OnTunnel = (status: TunnelStatus) => void

interface StartOptions {
  /** Once it aborts, the store belongs to another process: nothing is written there. */
  readonly lost: AbortSignal
  readonly clock?: Clock
  readonly log?: Log
  readonly onTunnel?: OnTunnel
}

/**
 * Receives deliveries through a tunnel's channel too. The tunnel's status is stored for `relay doctor`. The tunnel client is
 * loaded only here.
 */
export async function startTunnel(
  { database, intake, refusals, provider }: Relay,
  { webhookSecrets: secrets, maxBody }: Settings,
  address: string,
  { lost, log = silentLog, clock, onTunnel }: StartOptions,
): Promise<AsyncDisposable> {
  const { store } = database
  const { openTunnel } = await import('../tunnel/tunnel.js')
  let kept = Promise.resolve()
  const keep = async (write: () => Promise<void>): Promise<void> => {
    await kept
    if (lost.aborted) return
    await write().catch((error: unknown) => log.error(toRelayError(error).message, error))
  }
  const onStatus = (status: TunnelStatus): void => {
    onTunnel?.(status)
    kept = keep(() => keepStatus(store, process.pid, status))
  }
  const tunnel = openTunnel({
    address,
    clock,
    intake,
    refusals,
    provider,
    secrets,
    maxBody,
    store,
    lost,
    log,
    onStatus,
  })
  return {
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]()
      await keep(() => forgetStatus(store))
    },
  }
}
