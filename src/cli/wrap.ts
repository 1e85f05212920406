/** How far a line that was broken goes in. */
const HANGING = 4

/**
 * The same text with no line longer than `width`, where its words allow it. A broken line goes on under its second column
 * (what follows two spaces or more), or a little further in; a second column that begins too far right gets its own lines.
 */
export function fit(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => (line.length <= width ? line : broken(line, width)))
    .join('\n')
}

/** Joins what was broken for the source's sake: lines of a paragraph, which are not indented. */
export function joinParagraphs(text: string): string {
  return text.replaceAll(/(?<=\S)\n(?=\S)/g, ' ')
}

function broken(line: string, width: number): string[] {
  const [, indent = '', first = '', gap = '', second = ''] =
    /^(\s*)(\S+(?: \S+)*)(\s{2,})?(.*)$/.exec(line) ?? []
  if (second === '') return fill(first, indent, `${indent}${' '.repeat(indent === '' ? 0 : HANGING)}`, width)
  const column = indent.length + first.length + gap.length
  if (column <= width / 2) return fill(second, `${indent}${first}${gap}`, ' '.repeat(column), width)
  const below = `${indent}${' '.repeat(HANGING)}`
  return [...fill(first, indent, below, width), ...fill(second, below, below, width)]
}

function fill(text: string, start: string, next: string, width: number): string[] {
  const lines: string[] = []
  let line = start
  let empty = true
  for (const word of text.split(/\s+/)) {
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line)
      line = next
      empty = true
    }
    line += empty ? word : ` ${word}`
    empty = false
  }
  return [...lines, line]
}
