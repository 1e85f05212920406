import { isLoopback } from '../base/loopback.js'
import { DirectPoster } from './direct-poster.js'
import type { Poster, PosterOptions } from './poster.js'
import { ProxiedPoster } from './proxied-poster.js'

/**
 * Posts to one address. Any but this machine's own is reached through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY
 * name. Connections are as many as requests at once.
 */
export function openPoster(address: string, options: PosterOptions): Poster {
  const url = new URL(address)
  return url.protocol === 'http:' && isLoopback(url.hostname)
    ? new DirectPoster(url, options)
    : new ProxiedPoster(url, options)
}
