import { parseUrl } from '../base/parse-url.js'
import { type OutboundRequest, type OutboundResponse, readText, type SendOnce } from '../net/client.js'

/** A renamed repository takes one redirect; more than a few are a loop. */
const MAX_REDIRECTS = 3

/**
 * Sends a request and follows redirects only within the origin, so that the token in the headers reaches no other. A GET follows
 * up to three. A write follows one, and only with 307 or 308, which keep method and body (RFC 9110 section 15.4): after a 301 or
 * 302, clients repeat it as a GET. Returns a redirect that it does not follow.
 */
export async function sendFollowing(
  sendOnce: SendOnce,
  address: string,
  request: OutboundRequest,
): Promise<OutboundResponse> {
  const read = request.method === 'GET'
  const followed = read ? [301, 302, 307, 308] : [307, 308]
  let url = new URL(address)
  for (let left = read ? MAX_REDIRECTS : 1; ; left--) {
    const response = await sendOnce(url.href, request)
    const next = followed.includes(response.status) ? targetOf(response, url) : undefined
    if (!next || left === 0) return response
    await readText(response)
    url = next
  }
}

function targetOf({ header }: OutboundResponse, from: URL): URL | undefined {
  const location = header('location')
  const to = location === undefined ? undefined : parseUrl(location, from.href)
  return to?.origin === from.origin ? to : undefined
}
