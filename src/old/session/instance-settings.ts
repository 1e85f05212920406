import { RelayError } from '../../base/errors.js'
import { PROVIDER_NAMES } from '../../base/settings.js'
import type { RunningInstance } from '../../instance/running.js'
import type { OptionName, OptionValues } from '../settings/options.js'
import type { Origin } from '../settings/origin.js'
import type { LoadedOptions } from '../settings/read.js'

/** How to fix a setting that contradicts the instance, by where it was set for this one command. */
const FIXES: Readonly<Partial<Record<Origin['kind'], string>>> = {
  flag: 'Omit the flag',
  environment: 'Unset the variable',
}

/** A setting of this shell that contradicts the running instance. */
export interface Conflict {
  /** What contradicts what, without a full stop. */
  readonly text: string
  readonly fix: string
}

/** Every flag and environment variable that contradicts the instance. */
export function conflicts(instance: RunningInstance, { options, origins }: LoadedOptions): Conflict[] {
  const { pid, profile, provider, providerUrl, store, clientId, sandbox } = instance
  const host = `for ${provider} at ${providerUrl}`
  const served: readonly (readonly [OptionName, string | null | undefined, string])[] = [
    ['provider', provider, host],
    ['providerUrl', providerUrl, host],
    ['store', store, `with --store ${store}`],
    // The sandbox makes its own client, whatever is set.
    ['clientId', sandbox ? undefined : clientId, `with the OAuth client ${clientId}`],
  ]
  return served.flatMap(([name, value, how]) => {
    const origin = origins[name]
    const fix = origin && FIXES[origin.kind]
    if (fix === undefined || value === null || value === undefined || options[name] === value) return []
    const text = `${origin?.text} is ${String(options[name])}, but process ${pid} serves profile ${profile} ${how}`
    return [{ text, fix }]
  })
}

export function contradiction({ text, fix }: Conflict): RelayError {
  return new RelayError('settings', `${text}. ${fix}, or name another profile with --profile`)
}

/**
 * The options with the store and the code host of the instance, and without an incomplete OAuth client if the instance has one.
 * @throws RelayError `settings` when this version of relay does not know the code host.
 */
export function followInstance(instance: RunningInstance, { options }: LoadedOptions): OptionValues {
  const { pid, provider: name, providerUrl, store } = instance
  const provider = PROVIDER_NAMES.find((known) => known === name)
  if (!provider)
    throw new RelayError(
      'settings',
      `Process ${pid} serves the code host ${name}, which this version of relay does not know`,
    )
  const { clientId, ...others } = options
  // The instance has the OAuth client. A client id alone, as in relay.json, is no mistake in that case.
  const isHalf = clientId !== undefined && options.clientSecret === undefined
  return { ...(instance.clientId && isHalf ? others : options), provider, providerUrl, store }
}

/** The error of a command that needs data which only the instance has. `what` is a noun phrase, such as "its journal". */
export function onlyInMemory({ pid, profile }: RunningInstance, what: string): RelayError {
  return new RelayError(
    'settings',
    `Process ${pid} serves profile ${profile} with --store memory, so no other process can read ${what}. Start it with --store file`,
  )
}
