import { DEFAULT_PORT, type ProviderName, type StoreKind } from '../../base/settings.js'
import type { InstanceRow } from '../../instance/instance.js'
import type { Store } from '../../store/contract.js'
import type { OptionValues } from '../options.js'
import { profileFolder } from '../settings.js'

/** What the checks of a profile are about. */
export interface Facts {
  readonly options: OptionValues
  readonly folder: string
  readonly kind: StoreKind
  readonly host: string
  readonly port: number
  /** The code host: that of the instance where one runs. */
  readonly provider: ProviderName
  readonly providerUrl: string | undefined
  /** Where relay is reached, as far as can be told. */
  readonly publicUrl: string
  /** Has proved itself. */
  readonly instance: InstanceRow | undefined
  /** Open, unless the profile has no data yet, or it cannot be opened. */
  readonly store: Store | undefined
}

export function gatherFacts(
  options: OptionValues,
  { store, instance }: Pick<Facts, 'store' | 'instance'>,
): Facts {
  const host = options.host ?? '127.0.0.1'
  const port = options.port ?? DEFAULT_PORT
  const provider = options.provider ?? 'github'
  const here = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return {
    options,
    folder: profileFolder(options),
    kind: options.store ?? 'file',
    host,
    port,
    provider,
    providerUrl: options.providerUrl ?? (provider === 'github' ? 'https://github.com' : undefined),
    publicUrl: instance?.publicUrl ?? options.publicUrl ?? here,
    instance,
    store,
  }
}

/** How a command is written for the profile in question. */
export function commandFor({ profile = 'default' }: OptionValues, command: string): string {
  return profile === 'default' ? `relay ${command}` : `relay ${command} --profile ${profile}`
}
