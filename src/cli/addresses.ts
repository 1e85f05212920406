import { hostInUrl } from '../base/address.js'
import { shownSource } from '../base/source-names.js'
import { callbackUrl } from '../auth/parts.js'
import type { RunningInstance } from '../instance/protocol.js'
import type { Values } from './settings/parse.js'

// Addresses at which browsers and code hosts reach relay.

interface Reached {
  readonly values: Values
  readonly instance: Pick<RunningInstance, 'publicUrl'> | undefined
}

/** Returns the address at which browsers reach relay. Without an instance, that of the settings. */
export function publicAddress({ values, instance }: Reached): string {
  const { host, port, publicUrl } = values
  return instance?.publicUrl ?? publicUrl ?? `http://${hostInUrl(host)}:${port}`
}

/** Returns the address that the code host sends to through the running tunnel. Undefined without a tunnel or its channel. */
export function tunnelAddress({
  instance,
}: {
  readonly instance: Pick<RunningInstance, 'tunnels'> | undefined
}): string | undefined {
  return instance?.tunnels.find(({ source }) => shownSource(source) === undefined)?.url ?? undefined
}

/** Returns the callback address, as registered at the code host. The value of port 0 is not known before relay listens. */
export function redirectUri(publicUrl: string, provider: string): string {
  return callbackUrl(publicUrl.replace(/:0$/, ':<port>'), provider)
}
