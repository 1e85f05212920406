/** Characters that could rewrite a terminal's display: C0 and C1 controls, DEL, line ends, text direction. All below U+10000. */
const REWRITING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** One line of text for a terminal: every character that could rewrite the display is shown as `\u{…}`. */
export function printable(text: string): string {
  return text.replaceAll(REWRITING, shown)
}

/** Several lines of text for a terminal: like {@link printable}, but keeps line feeds and tabs. */
export function printableText(text: string): string {
  return text.replaceAll(REWRITING, (char) => (char === '\n' || char === '\t' ? char : shown(char)))
}

/**
 * JSON text for a terminal: the same value, with these characters written as `\uXXXX` (RFC 8259 section 7). Keeps raw line
 * feeds, which occur only between values.
 */
export function printableJson(json: string): string {
  return json.replaceAll(REWRITING, (char) => (char === '\n' ? char : `\\u${hex(char).padStart(4, '0')}`))
}

function shown(char: string): string {
  return `\\u{${hex(char)}}`
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16)
}
