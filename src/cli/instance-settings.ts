import { RelayError } from '../base/errors.js'
import { PROVIDER_NAMES } from '../base/settings.js'
import type { InstanceRow } from '../instance/instance.js'
import { OPTIONS, type OptionValues } from './options.js'
import type { Flags } from './settings.js'

/**
 * The options with the code host that the instance serves, whatever files and environment say.
 * @throws RelayError `settings` when a flag of this command names another.
 */
export function servedSettings(instance: InstanceRow, flags: Flags, options: OptionValues): OptionValues {
  const { pid, provider: name, providerUrl } = instance
  for (const option of ['provider', 'providerUrl'] as const) {
    if (flags[option] === undefined || options[option] === instance[option]) continue
    const [flag = ''] = OPTIONS[option].flag?.split(' ') ?? []
    throw new RelayError(
      'settings',
      `${flag}: this profile is served by process ${pid} for ${name} at ${providerUrl}: leave the flag out, or stop that process`,
    )
  }
  const provider = PROVIDER_NAMES.find((known) => known === name)
  if (!provider)
    throw new RelayError(
      'settings',
      `This relay does not know the code host ${name} that process ${pid} serves`,
    )
  return { ...options, provider, providerUrl }
}
