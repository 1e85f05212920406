import { RelayError } from '../../../base/errors.js'
import { isLoopback } from '../../../base/loopback.js'
import { listSavedHooks } from '../../../hooks/saved.js'
import type { Provider } from '../../../providers/provider.js'
import { mayHaveData, openDatabase } from '../../../store/open.js'
import { readTunnel } from '../../../serve/tunnel.js'
import type { Attached } from '../../session/attach.js'
import { publicAddress } from '../../session/public-address.js'
import { formatRepo } from '../../session/repo.js'
import { profileFolder, storeOf } from '../../settings/complete.js'

/** The App's own webhook, as the manifest asks for it. */
export interface AppWebhook {
  readonly url: string
  readonly active: boolean
}

/**
 * The App's own webhook leads to the tunnel, or to the public address. Undefined if the code host cannot reach relay.
 * @throws RelayError `settings` if it is to be active and there is no address, or hooks that would send the same
 */
export async function webhookOf(
  attached: Attached,
  provider: Pick<Provider, 'origin'>,
  active: boolean,
): Promise<AppWebhook | undefined> {
  const { options, instance } = attached
  const { tunnel, hooks } = await readProfile(attached, provider)
  const address = publicAddress(options, instance)
  // The sandbox is on this machine.
  const isReachable = options.provider === 'sandbox' || !isLoopback(new URL(address).hostname)
  const url = tunnel ?? (isReachable ? `${address}/webhook` : undefined)
  if (url === undefined && active)
    throw new RelayError(
      'settings',
      `The code host cannot reach ${address}. Start relay serve --tunnel first, or give --public-url`,
    )
  const [hook] = hooks
  if (active && hook !== undefined)
    throw new RelayError(
      'settings',
      `This profile has hooks already (${hooks.join(', ')}), so the App's webhook would send each delivery a second time. Remove them with relay hook remove ${hook}`,
    )
  if (url === undefined) return undefined
  return { url, active }
}

interface ProfileHooks {
  /** Address of the running tunnel. */
  readonly tunnel: string | undefined
  /** Names of the repositories where the profile has hooks. */
  readonly hooks: readonly string[]
}

async function readProfile(
  { options, instance }: Attached,
  provider: Pick<Provider, 'origin'>,
): Promise<ProfileHooks> {
  const [kind, folder] = [storeOf(options), profileFolder(options)]
  if (!mayHaveData(kind, folder)) return { tunnel: undefined, hooks: [] }
  await using database = await openDatabase({ kind, folder })
  const { store } = database
  return {
    tunnel: (instance && (await readTunnel(store, instance.pid))?.url) ?? undefined,
    hooks: (await listSavedHooks(store, provider)).map(formatRepo),
  }
}
