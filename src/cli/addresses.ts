import { callbackUrl } from '../auth/parts.js'
import { isCodeHost } from '../base/settings.js'
import type { RunningInstance } from '../instance/protocol.js'
import type { Values } from './settings/parse.js'

// The addresses at which browsers and code hosts reach relay.

interface Reached {
  readonly values: Pick<Values, 'host' | 'port' | 'publicUrl'>
  readonly instance: Pick<RunningInstance, 'publicUrl'> | undefined
}

/** The address at which browsers reach relay, as far as it is known. */
export function publicAddress({ values, instance }: Reached): string {
  const { host, port, publicUrl } = values
  return instance?.publicUrl ?? publicUrl ?? `http://${hostInUrl(host)}:${port}`
}

/** A host as it is written in a URL. */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** The address that the code host sends to through the running tunnel. Undefined if there is none, or it has no channel yet. */
export function tunnelAddress({
  instance,
}: {
  readonly instance: Pick<RunningInstance, 'tunnels'> | undefined
}): string | undefined {
  return instance?.tunnels.find(({ source }) => isCodeHost(source))?.url ?? undefined
}

/** The callback address, as registered at the code host. The value of port 0 is not known before relay listens. */
export function redirectUri(publicUrl: string, provider: string): string {
  return callbackUrl(publicUrl.replace(/:0$/, ':<port>'), provider)
}
