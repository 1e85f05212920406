import type { RunningInstance } from '../../instance/running.js'
import type { OptionValues } from '../settings/options.js'

/** The address at which browsers reach relay, as far as it is known. */
export function publicAddress(
  { host, port, publicUrl }: OptionValues,
  instance: Pick<RunningInstance, 'publicUrl'> | undefined,
): string {
  const local = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return instance?.publicUrl ?? publicUrl ?? local
}

/** The callback address, as registered at the code host. The value of port 0 is not known before relay listens. */
export function redirectUri(publicUrl: string, provider: string): string {
  return `${publicUrl.replace(/:0$/, ':<port>')}/auth/${provider}/callback`
}
