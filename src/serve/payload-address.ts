import type { Settings } from '../base/settings.js'
import type { OnTunnel } from './tunnel.js'

/** The address that the code host sends deliveries to. */
export interface PayloadAddress {
  /** Resolves once it is known: the tunnel's when there is a channel. */
  readonly known: Promise<string>
  /** Calls `listener` whenever deliveries can come again after they could not. Returns a function that ends it. */
  onBack(listener: () => void): () => void
  /** Passes the tunnel's changes on to `next`, having noticed them. */
  onTunnel(next: OnTunnel | undefined): OnTunnel
}

/** The public address, unless a tunnel is set. */
export function watchAddress(
  { tunnel, publicUrl }: Pick<Settings, 'tunnel' | 'publicUrl'>,
  url: string,
): PayloadAddress {
  const listeners = new Set<() => void>()
  let resolve: (address: string) => void = () => {}
  const known = new Promise<string>((done) => (resolve = done))
  if (tunnel === undefined) resolve(`${publicUrl ?? url}/webhook`)
  let wasConnected = false
  let isDown = false
  return {
    known,
    onBack(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onTunnel: (next) => (status) => {
      next?.(status)
      const isConnected = status.state === 'connected'
      if (isConnected && status.url !== null) resolve(status.url)
      if (isConnected && isDown) for (const listener of listeners) listener()
      wasConnected ||= isConnected
      isDown = wasConnected && !isConnected
    },
  }
}
