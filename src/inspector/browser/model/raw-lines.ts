/** Text laid out in rows of at most so many characters. */
export interface RawLines {
  readonly text: string
  /** Where each row begins. */
  readonly starts: readonly number[]
  /** The number of the line that each row belongs to; a row that continues a line has the number of the one before it. */
  readonly numbers: readonly number[]
}

/** Breaks text at line feeds, and lines longer than `columns` into several rows. Never inside a surrogate pair. */
export function layOut(text: string, columns: number): RawLines {
  const starts: number[] = []
  const numbers: number[] = []
  let line = 1
  for (let start = 0; start <= text.length; line++) {
    const feed = text.indexOf('\n', start)
    const end = feed === -1 ? text.length : feed
    let at = start
    do {
      starts.push(at)
      numbers.push(line)
      at = rowEnd(text, at, end, columns)
    } while (at < end)
    start = end + 1
  }
  return { text, starts, numbers }
}

/** The text of a row, without its line feed. */
export function rowText({ text, starts }: RawLines, row: number): string {
  const [start = 0, next = text.length + 1] = [starts[row], starts[row + 1]]
  const end = text.charAt(next - 1) === '\n' || next > text.length ? next - 1 : next
  return text.slice(start, Math.max(start, end))
}

function rowEnd(text: string, start: number, end: number, columns: number): number {
  const cut = start + columns
  if (cut >= end) return end
  const isPair = (text.codePointAt(cut - 1) ?? 0) > 0xffff
  return isPair ? cut + 1 : cut
}
