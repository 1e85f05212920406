/** One header as received: the name in its own spelling, the value decoded as latin1. */
export type Header = readonly [name: string, value: string]

/** All values of each header, by lower-case name. */
export type HeaderLines = ReadonlyMap<string, readonly string[]>

/** Indexes headers by name, for several look-ups. */
export function indexHeaders(headers: readonly Header[]): HeaderLines {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const values = lines.get(key)
    if (values) values.push(value)
    else lines.set(key, [value])
  }
  return lines
}

/** Returns a header's value if the header occurs exactly once. Of two values it is unclear which one counts. */
export function singleValue(lines: HeaderLines, name: string): string | undefined {
  const values = lines.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/**
 * Headers of one connection (RFC 9110 section 7.6.1), and those that each connection sets again, like Host and
 * Content-Length.
 */
const OF_ONE_HOP = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])
const CONNECTION = 'connection'
/** Headers with credentials. They are not stored, and forwarded only if relay itself knows the value. */
export const CREDENTIAL_HEADERS = /^(?:authorization|cookie|proxy-.*)$/i

/** relay's own headers. A request from outside cannot have them stored or forwarded. */
const OWN_HEADER = /^x-relay-/i

/** True for a header that belongs to one connection or to relay itself, and is never copied. */
export function isConnectionHeader(name: string): boolean {
  return OF_ONE_HOP.has(name.toLowerCase()) || OWN_HEADER.test(name)
}

/**
 * Selects the headers of a forwarded delivery: all but those of one connection, those that `Connection` names, and
 * credentials.
 * @param isKept true for a header that looks like a credential and is none, but a signature
 */
export function endToEndHeaders(
  headers: readonly Header[],
  isKept: (name: string) => boolean = () => false,
): Header[] {
  const named = namedByConnection(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    const isCredential = CREDENTIAL_HEADERS.test(key) && !isKept(key)
    return !OF_ONE_HOP.has(key) && !isCredential && !named.has(key)
  })
}

/** False for a header that no request can have (RFC 9110 section 5). */
export function isSendable([name, value]: Header): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

function namedByConnection(headers: readonly Header[]): ReadonlySet<string> {
  const named = new Set<string>()
  for (const [name, value] of headers) {
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    for (const other of value.toLowerCase().split(',')) named.add(other.trim())
  }
  return named
}

/** Spells a lower-case header name as code hosts do: `x-github-hook-id` → `X-GitHub-Hook-ID`. */
export function canonicalHeaderName(name: string): string {
  return name
    .split('-')
    .map((word) => SPELLINGS.get(word) ?? word.charAt(0).toUpperCase() + word.slice(1))
    .join('-')
}

const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'],
  ['id', 'ID'],
])
