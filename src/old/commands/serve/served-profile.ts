import { RelayError } from '../../../base/errors.js'
import { readSavedProfile } from '../../../instance/profile.js'
import { SANDBOX_PROFILE, startCommand } from '../../session/start-command.js'
import { profileFolder } from '../../settings/complete.js'
import type { OptionValues } from '../../settings/options.js'
import type { LoadedOptions } from '../../settings/read.js'
import { readSetup, withStoredClient, withStoredHost } from '../../settings/stored.js'

/**
 * The settings with which `serve` continues a profile: with its kind of store and what `relay setup` stored, unless another is
 * set. A sandbox makes its own client.
 * @throws RelayError `storage`; `settings` when the profile belongs to a sandbox and `--sandbox` is missing, or the reverse: its tokens and
 * deliveries are of another code host.
 */
export async function servedProfile(
  { options, origins }: LoadedOptions,
  sandbox: boolean,
): Promise<OptionValues> {
  const continued = continueProfile({ options, origins }, sandbox)
  if (sandbox) return continued
  const stored = await readSetup(continued, { create: true })
  return withStoredClient(withStoredHost({ options: continued, origins }, stored), stored).options
}

function continueProfile({ options, origins }: LoadedOptions, sandbox: boolean): OptionValues {
  const saved = options.store === 'memory' ? undefined : readSavedProfile(profileFolder(options))
  if (!saved) return options
  const { profile } = options
  if (saved.sandbox && !sandbox && options.provider !== 'sandbox')
    throw new RelayError(
      'settings',
      `Profile ${profile} belongs to a sandbox. Start it with ${startCommand({ profile, sandbox: true })}, or choose another profile with --profile`,
    )
  if (!saved.sandbox && sandbox && saved.provider !== 'sandbox' && profile !== SANDBOX_PROFILE)
    throw new RelayError(
      'settings',
      `Profile ${profile} belongs to ${saved.providerUrl ?? 'a code host'}. Choose another for the sandbox with --profile, or remove its data with relay reset --profile ${profile}`,
    )
  return origins.store ? options : { ...options, store: saved.store }
}
