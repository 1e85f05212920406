import type { IncomingMessage } from 'node:http'

export interface PlainOptions {
  readonly hostAllowed: (host: string | undefined) => boolean
  /** Largest body that is accepted, in bytes. */
  readonly limit: number
  /** Headers besides Host that matter to who answers, in lower case. */
  readonly headers?: readonly string[]
}

/**
 * Whether a request comes as nearly all do: a Host that is allowed, a body whose announced length is within the limit and
 * that nobody waits to be asked for, and nothing that matters said twice. It can then be answered as it is, without the
 * application, which knows what to say to all others.
 */
export function isPlain(
  { headers, rawHeaders }: IncomingMessage,
  { hostAllowed, limit, headers: more = [] }: PlainOptions,
): boolean {
  return (
    Number(headers['content-length']) <= limit &&
    headers.expect === undefined &&
    hostAllowed(headers.host) &&
    countOf('host', rawHeaders) === 1 &&
    more.every((name) => countOf(name, rawHeaders) <= 1)
  )
}

/** Of a name in lower case. */
function countOf(wanted: string, raw: readonly string[]): number {
  let count = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (name.length === wanted.length && name.toLowerCase() === wanted) count++
  }
  return count
}
