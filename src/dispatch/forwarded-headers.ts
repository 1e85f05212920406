import type { Header } from '../journal/delivery.js'

/**
 * What a target is not sent although it was received. Host, Content-Length and `X-Relay-Attempt` are this relay's own;
 * the rest speak of one connection only (RFC 9110 section 7.6.1) or carry credentials. Expect is answered already.
 */
const DROPPED = new Set(
  (
    'host content-length x-relay-attempt connection keep-alive te trailer transfer-encoding upgrade ' +
    'authorization cookie expect'
  ).split(' '),
)

/** The headers a target receives: the provider's as recorded, in their order and spelling, and which attempt this is. */
export function forwardedHeaders(recorded: readonly Header[], attempt: number): Header[] {
  const named = namedByConnection(recorded)
  const kept = recorded.filter(([name, value]) => {
    const key = name.toLowerCase()
    return !DROPPED.has(key) && !key.startsWith('proxy-') && !named.has(key) && isWritable(name, value)
  })
  return [...kept, ['X-Relay-Attempt', String(attempt)]]
}

/** Headers that a Connection header names are meant for that connection too. */
function namedByConnection(headers: readonly Header[]): Set<string> {
  const values = headers.filter(([name]) => name.toLowerCase() === 'connection').map(([, value]) => value)
  return new Set(values.flatMap((value) => value.toLowerCase().split(',')).map((name) => name.trim()))
}

/** A header that cannot be written (RFC 9110 section 5) would keep the whole delivery from ever being sent. */
function isWritable(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}
