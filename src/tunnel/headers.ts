import type { Header } from '../journal/delivery.js'
import { passedOn } from '../journal/headers.js'

/**
 * What proxies before a tunnel's server tell about the connection to them: the standard ones, and those of the places
 * where such servers run (Cloudflare, Azure, AWS, Heroku, Render, Fly).
 */
const OF_THE_WAY =
  /^(?:forwarded|via|x-forwarded-.*|x-original-.*|x-real-ip|x-client-ip|x-cluster-client-ip|client-ip|true-client-ip|x-scheme|x-request-(?:id|start)|cf-.*|cdn-loop|x-arr-.*|x-azure-.*|x-appservice-.*|x-waws-.*|x-site-deployment-id|was-default-hostname|disguised-host|max-forwards|x-amz(?:n|-cf)-.*|x-envoy-.*|connect-time|total-route-time|rndr-id|render-proxy-ttl|fly-.*|traceparent|tracestate)$/
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
/** As Node takes them over HTTP: latin1 without control characters. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * The headers that the code host sent: without those of the way, and spelled as it spells them, since the way made them
 * lower-case. What HTTP would not carry as a header is left out.
 */
export function sentHeaders(lines: readonly Header[]): Header[] {
  const sent = lines.filter(([name, value]) => NAME.test(name) && VALUE.test(value) && !OF_THE_WAY.test(name))
  return passedOn(sent).map(([name, value]) => [spelled(name), value])
}

/** `x-github-hook-id` → `X-GitHub-Hook-ID` */
function spelled(name: string): string {
  return name
    .split('-')
    .map((word) => SPELLINGS.get(word) ?? word.charAt(0).toUpperCase() + word.slice(1))
    .join('-')
}

const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'],
  ['id', 'ID'],
])
