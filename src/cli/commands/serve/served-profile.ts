import { RelayError } from '../../../base/errors.js'
import { readSavedProfile } from '../../../instance/saved-profile.js'
import { SANDBOX_PROFILE, startCommand } from '../../session/start-command.js'
import { profileFolder } from '../../settings/complete.js'
import type { OptionValues } from '../../settings/options.js'
import type { LoadedOptions } from '../../settings/read.js'

/**
 * The settings with which `serve` continues a profile: with its kind of store, unless another is set.
 * @throws RelayError `settings` when the profile belongs to a sandbox and `--sandbox` is missing, or the reverse: its tokens and
 * deliveries are of another code host.
 */
export function servedProfile({ options, origins }: LoadedOptions, sandbox: boolean): OptionValues {
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
