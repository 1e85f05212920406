import { parseUrl } from '../base/parse-url.js'
import type { HeaderReader } from '../net/client.js'

/** Address of the next page in a `Link` header (RFC 8288), as GitHub writes it. Only its query is to be used. */
export function nextLink(header: HeaderReader): URL | undefined {
  const [, address = ''] = /<([^<>]*)>; *rel="next"/.exec(header('link') ?? '') ?? []
  return parseUrl(address)
}
