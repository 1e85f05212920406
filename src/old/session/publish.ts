import { toRelayError } from '../../base/errors.js'
import type { Settings } from '../../base/settings.js'
import { publishInstance, secretPrint } from '../../instance/running.js'
import { saveProfile } from '../../instance/profile.js'
import type { ServeOptions } from '../../serve/serve.js'
import { isOfFolder } from '../settings/origin.js'
import type { Prepared } from '../settings/prepare.js'

export type OnTaken = NonNullable<ServeOptions['onTaken']>

/**
 * Makes a service that this process starts known to the commands of other terminals: registers it while it runs, with the
 * repositories of its `--hook`, and has its profile remember how it was used. With a memory store, nothing but the registration is written; if that fails, it warns.
 */
export function publish({ options, origins, output }: Prepared, hooks: readonly string[] = []): OnTaken {
  return (record, { profile, folder, webhookSecrets, provider, providerUrl }, sandbox) => {
    const { current } = webhookSecrets
    const { store } = options
    const running = { ...record, profile, store, sandbox, secretPrint: secretPrint(record, current), hooks }
    if (store !== 'memory') {
      remember({ options, origins }, { folder, provider, providerUrl }, sandbox)
      return publishInstance(options.home, { ...running, madeSecret: null })
    }
    try {
      const madeSecret = origins.webhookSecret ? null : current.reveal()
      return publishInstance(options.home, { ...running, madeSecret })
    } catch (error) {
      output.log.warn(`other terminals cannot find this relay: ${toRelayError(error).message}`)
      return undefined
    }
  }
}

/** Has a profile remember how it is used. @throws RelayError as {@link saveProfile}. */
export function remember(
  { options: { store }, origins }: Pick<Prepared, 'options' | 'origins'>,
  { folder, provider, providerUrl }: Pick<Settings, 'folder' | 'provider' | 'providerUrl'>,
  sandbox: boolean,
): void {
  if (store === 'memory') return
  // Not from the working folder: the client secret is sent to the address that is remembered.
  const isOwn = ![origins.provider, origins.providerUrl].some((origin) => origin && isOfFolder(origin))
  const host = sandbox || isOwn ? { provider, providerUrl } : { provider: null, providerUrl: null }
  saveProfile(folder, { store, sandbox, ...host })
}
