import { RelayError } from '../../../base/errors.js'
import type { Settings } from '../../../base/settings.js'
import type { CodeHost } from '../../../codehost/host.js'
import { openHost } from '../../../codehost/hosts.js'
import type { Attached } from '../../session/attach.js'
import { onlyInMemory } from '../../session/instance-settings.js'
import { publicAddress, redirectUri } from '../../session/public-address.js'
import { completeSettings } from '../../settings/complete.js'
import { isOfFolder } from '../../settings/origin.js'
import { unusedWebhookSecret } from '../../settings/webhook-secret.js'

/** What setup works with, checked before anything is asked or registered. */
export interface SetupPlan {
  readonly host: CodeHost
  readonly settings: Settings
  readonly callbackUrl: string
}

/**
 * Checks that what setup stores would take effect.
 * @throws RelayError `settings` that names what to change
 */
export function planSetup(attached: Attached): SetupPlan {
  const { options, origins, instance } = attached
  if (instance?.sandbox)
    throw new RelayError(
      'settings',
      `Profile ${options.profile} needs no setup: its sandbox makes the client`,
    )
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'what setup stores')
  if (options.store === 'memory')
    throw new RelayError('settings', '--store memory would lose the client as soon as this command ends')
  const given = origins.clientSecret ?? origins.clientId
  if (given)
    throw new RelayError(
      'settings',
      `${given.text} is set, and wins over what relay setup stores. Remove it, then run relay setup again`,
    )
  // Tokens and secrets are sent there, and the next version of a checkout can name another address.
  const place = origins.providerUrl ?? origins.provider
  if (place && isOfFolder(place))
    throw new RelayError(
      'settings',
      `Only this folder names the code host (${place.text}). Give --provider and --provider-url`,
    )
  const settings = completeSettings(options, unusedWebhookSecret)
  const address = publicAddress(options, instance)
  if (new URL(address).port === '0')
    throw new RelayError('settings', 'The callback address needs a fixed port. Give one with --port')
  const host = openHost({ name: settings.provider, url: settings.providerUrl })
  return { host, settings, callbackUrl: redirectUri(address, host.name) }
}
