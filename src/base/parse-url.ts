/**
 * An absolute address, or one relative to `base`; undefined for a text that is none. Not `URL.canParse`: in Node 20 and 22 it
 * takes addresses with letters such as `ü` for invalid once V8 has optimized its caller.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
