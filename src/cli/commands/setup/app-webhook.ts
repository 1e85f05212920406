import { RelayError } from '../../../base/errors.js'
import { isLoopback } from '../../../base/loopback.js'
import { isSharedAddress } from '../../../base/shared-store.js'
import { mayHaveData, openDatabase } from '../../../store/open.js'
import { readTunnel } from '../../../serve/tunnel.js'
import type { Attached } from '../../session/attach.js'
import { publicAddress } from '../../session/public-address.js'
import { profileFolder, storeOf } from '../../settings/complete.js'
import { readWebhookSecret } from '../../settings/webhook-secret.js'

/** The App's own webhook, as the manifest asks for it. */
export interface AppWebhook {
  readonly url: string
  readonly active: boolean
}

/**
 * The App's own webhook leads to the tunnel, or to the public address. Undefined if the code host cannot reach relay.
 * @throws RelayError `settings` if it is to be active and there is no address; also for a shared store without a webhook secret
 */
export async function webhookOf(attached: Attached, active: boolean): Promise<AppWebhook | undefined> {
  const { options, instance } = attached
  const address = publicAddress(options, instance)
  // The sandbox is on this machine.
  const isReachable = options.provider === 'sandbox' || !isLoopback(new URL(address).hostname)
  const url = (await tunnelOf(attached)) ?? (isReachable ? `${address}/webhook` : undefined)
  if (url === undefined && active)
    throw new RelayError(
      'settings',
      `The code host cannot reach ${address}. Start relay serve --tunnel first, or give --public-url`,
    )
  if (url === undefined) return undefined
  if (isSharedAddress(options.store) && options.webhookSecret === undefined)
    readWebhookSecret(profileFolder(options), options.store)
  return { url, active }
}

/** Address of the running tunnel. */
async function tunnelOf({ options, instance }: Attached): Promise<string | undefined> {
  const [kind, folder] = [storeOf(options), profileFolder(options)]
  if (!instance || !mayHaveData(kind, folder)) return undefined
  await using database = await openDatabase({ kind, folder })
  return (await readTunnel(database.store, instance.pid))?.url ?? undefined
}
