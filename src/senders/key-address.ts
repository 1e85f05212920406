import { isLoopback, parseUrl } from '../base/address.js'

/** True for an address from which keys are taken: https, and for tests http on this machine. */
export function isKeyAddress(address: string): boolean {
  const url = parseUrl(address)
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
}
