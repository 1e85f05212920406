import { readText } from './answer.js'
import type { Incoming, Outgoing, SendOnce } from './fetch.js'

/** A renamed repository is one redirect; more than a few are a loop. */
const MOST_READS = 3

/**
 * `fetch` that follows redirects within the origin only, so that the token in the headers reaches no other. A
 * GET follows up to three; a write one, and only where its method and body are kept (307, 308: RFC 9110 section
 * 15.4), because after a 301 or 302 fetch would repeat it as a GET. What is not followed is returned as it is.
 */
export async function fetchFollowing(
  call: SendOnce,
  address: string,
  request: Omit<Outgoing, 'redirect'>,
): Promise<Incoming> {
  const read = request.method === 'GET'
  const followed = read ? [301, 302, 307, 308] : [307, 308]
  let url = new URL(address)
  for (let left = read ? MOST_READS : 1; ; left--) {
    const response = await call(url.href, { ...request, redirect: 'manual' })
    const next = followed.includes(response.status) ? targetOf(response, url) : undefined
    if (!next || left === 0) return response
    await readText(response)
    url = next
  }
}

function targetOf(response: Incoming, from: URL): URL | undefined {
  const location = response.headers.get('location')
  if (location === null || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  return to.origin === from.origin ? to : undefined
}
