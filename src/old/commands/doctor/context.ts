import { DEFAULTS } from '../../../base/settings.js'
import type { RunningInstance } from '../../../instance/running.js'
import type { Store } from '../../../store/kv.js'
import type { Database } from '../../../store/open.js'
import { profileFolder } from '../../settings/complete.js'
import type { Attached } from '../../session/attach.js'
import { publicAddress } from '../../session/public-address.js'
import type { OptionValues } from '../../settings/options.js'
import type { Origins } from '../../settings/origin.js'

/** The profile that is checked. */
export interface CheckContext {
  /** With the code host of the instance, if one runs. */
  readonly options: OptionValues
  readonly folder: string
  /** The address of relay, as far as it is known. */
  readonly publicUrl: string
  /** The running instance, which has proved itself. */
  readonly instance: RunningInstance | undefined
  /** Where each setting of this shell comes from. */
  readonly origins: Origins
  /** Undefined when the profile has no data yet, or the store cannot be opened. */
  readonly store: Store | undefined
  readonly secrets: Store | undefined
}

export function createCheckContext(
  { options, origins, instance }: Pick<Attached, 'options' | 'origins' | 'instance'>,
  database: Pick<Database, 'store' | 'secrets'> | undefined,
): CheckContext {
  const publicUrl = publicAddress(options, instance)
  return {
    options,
    folder: profileFolder(options),
    publicUrl,
    instance,
    origins,
    store: database?.store,
    secrets: database?.secrets,
  }
}

/** A command line of relay for the profile. */
export function commandFor({ profile }: Pick<OptionValues, 'profile'>, command: string): string {
  return profile === DEFAULTS.profile ? `relay ${command}` : `relay ${command} --profile ${profile}`
}
