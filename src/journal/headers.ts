import type { Header } from './delivery.js'

/** They belong to one connection (RFC 9110 section 7.6.1), or are made anew for each, like Host and the body's length. */
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
const CREDENTIALS = /^(?:authorization|cookie|proxy-.*)$/

/** The headers a delivery is passed on with: without those of one connection, those it names, and credentials. */
export function passedOn(headers: readonly Header[]): Header[] {
  const named = namedByConnection(headers)
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    return !OF_ONE_HOP.has(key) && !CREDENTIALS.test(key) && !named.has(key)
  })
}

function namedByConnection(headers: readonly Header[]): ReadonlySet<string> {
  const named = new Set<string>()
  for (const [name, value] of headers) {
    if (name.length !== CONNECTION.length || name.toLowerCase() !== CONNECTION) continue
    for (const other of value.toLowerCase().split(',')) named.add(other.trim())
  }
  return named
}
