import { isUtf8 } from 'node:buffer'
import { parseUrl } from '../base/address.js'
import { printable } from '../base/text.js'
import type { ResponseHead } from './client.js'

/** Most characters of an address in a message. */
const MAX_SHOWN = 300

/**
 * Formats the address to which a response redirects, for a message: without user name, query and fragment, which can
 * hold secrets. Undefined if it is no redirect, or not to an http address.
 */
export function redirectTarget({ status, header }: ResponseHead, from: string | URL): string | undefined {
  const location = status >= 300 && status <= 399 ? header('location') : undefined
  // Node decodes headers as latin1; browsers decode this one as UTF-8.
  const bytes = Buffer.from(location ?? '', 'latin1')
  const text = isUtf8(bytes) ? bytes.toString() : location
  const url = text ? parseUrl(text, String(from)) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  return printable(`${url.origin}${url.pathname}`).slice(0, MAX_SHOWN)
}
