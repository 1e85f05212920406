import type { Header } from '../journal/delivery.js'

/** Every line of each header, by lower-case name. */
export type HeaderLines = ReadonlyMap<string, readonly string[]>

/** Reads the lines once, so that looking up several names stays cheap. */
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

/** The header's value when it was given exactly once: of two lines nobody can say which one was meant. */
export function only(lines: HeaderLines, name: string): string | undefined {
  const values = lines.get(name)
  return values?.length === 1 ? values[0] : undefined
}

const CREDENTIALS = /^(?:authorization|cookie|proxy-.*)$/i

/** The headers a delivery is kept with: without `Authorization`, `Cookie` and `Proxy-*`, which hold credentials. */
export function withoutCredentials(headers: readonly Header[]): readonly Header[] {
  return headers.filter(([name]) => !CREDENTIALS.test(name))
}
