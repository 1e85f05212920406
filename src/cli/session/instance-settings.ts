import { RelayError } from '../../base/errors.js'
import { PROVIDER_NAMES } from '../../base/settings.js'
import type { InstanceRecord } from '../../instance/instance.js'
import type { OptionValues } from '../settings/options.js'
import type { Origin } from '../settings/origin.js'
import type { LoadedOptions } from '../settings/read.js'

/** How to fix a setting that contradicts the instance, by where it was set for this one command. */
const FIXES: Readonly<Partial<Record<Origin['kind'], string>>> = {
  flag: 'omit the flag',
  environment: 'unset the variable',
}

/**
 * The options with the code host of the instance instead of that of settings files, and without an incomplete OAuth client if the
 * instance has one.
 * @throws RelayError `settings` when a flag or a variable of the environment names another.
 */
export function servedSettings(instance: InstanceRecord, { options, origins }: LoadedOptions): OptionValues {
  const { pid, provider: name, providerUrl } = instance
  for (const option of ['provider', 'providerUrl'] as const) {
    const origin = origins[option]
    const fix = origin && FIXES[origin.kind]
    if (fix === undefined || options[option] === instance[option]) continue
    throw new RelayError(
      'settings',
      `${origin?.text}: this profile is served by process ${pid} for ${name} at ${providerUrl}: ${fix}, or stop that process`,
    )
  }
  const provider = PROVIDER_NAMES.find((known) => known === name)
  if (!provider)
    throw new RelayError(
      'settings',
      `Process ${pid} serves the code host ${name}, which this version of relay does not know`,
    )
  const { clientId, ...others } = options
  // The instance has the OAuth client. A client id alone, as in relay.json, is no mistake in that case.
  const isHalf = clientId !== undefined && options.clientSecret === undefined
  return { ...(instance.clientId && isHalf ? others : options), provider, providerUrl }
}
