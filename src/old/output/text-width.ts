import stringWidth from 'string-width'

/** The usual case, which needs no tables: ASCII and the signs of relay's own lines. */
const NARROW = /^[ -~✓✗↻◦…│·→]*$/
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** The columns that a text takes on a terminal: two for East Asian characters and emoji, none for combining marks. */
export function textWidth(text: string): number {
  return NARROW.test(text) ? text.length : stringWidth(text)
}

/** The start of the text in at most `width` columns. What is cut off is shown as `…`, as is, with `more`, what follows the text. */
export function cut(text: string, width: number, more = false): string {
  if (width <= 0) return ''
  if (!more && textWidth(text) <= width) return text
  const segments = segmentsOf(text)
  return `${segments.slice(0, fitting(segments, width - 1)).join('')}…`
}

/** The end of the text in at most `width` columns, after a `…` if it is cut. */
export function cutStart(text: string, width: number): string {
  if (width <= 0) return ''
  if (textWidth(text) <= width) return text
  const segments = segmentsOf(text)
  const kept = fitting(segments.toReversed(), width - 1)
  return `…${segments.slice(segments.length - kept).join('')}`
}

/** The text, with spaces up to `width` columns. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

function segmentsOf(text: string): readonly string[] {
  return [...graphemes.segment(text)].map(({ segment }) => segment)
}

/** How many of the segments fit. */
function fitting(segments: readonly string[], width: number): number {
  let used = 0
  let count = 0
  for (const segment of segments) {
    used += textWidth(segment)
    if (used > width) break
    count += 1
  }
  return count
}
