import { isLoopback } from '../base/loopback.js'
import { DirectPoster } from './direct-poster.js'
import type { Poster } from './poster.js'
import { ProxiedPoster } from './proxied-poster.js'

/**
 * Posts to one address. Any but this machine's own is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY
 * name. Connections are as many as requests at once.
 */
export function openPoster(address: string): Poster {
  const url = new URL(address)
  return url.protocol === 'http:' && isLoopback(url.hostname) ? new DirectPoster(url) : new ProxiedPoster(url)
}
