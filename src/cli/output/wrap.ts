/** Smallest indent of a continuation line, so that it differs from the next entry. */
const MIN_INDENT = 2

/**
 * Breaks a line at spaces into lines of at most `width` columns. Continuation lines are indented by `indent`, or by
 * less if a long word then fits. A longer word, such as an address to copy, stays whole.
 * @param widthOf counts the columns of a word. Default: its characters.
 */
export function wrap(
  text: string,
  width: number,
  indent: number,
  widthOf = (word: string): number => word.length,
): string[] {
  const lines: string[] = []
  let [line, used] = ['', 0]
  for (const [, gap = '', word = ''] of text.matchAll(/( *)([^ ]*)/g)) {
    const wide = widthOf(word)
    if (used > 0 && wide > 0 && used + gap.length + wide > width) {
      lines.push(line)
      const start = Math.min(indent, Math.max(MIN_INDENT, width - wide))
      ;[line, used] = [' '.repeat(start) + word, start + wide]
    } else if (word !== '') {
      line += gap + word
      used += gap.length + wide
    }
  }
  return [...lines, line]
}
