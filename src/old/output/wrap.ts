/** Indentation of the rest of a wrapped line. */
const HANGING = 4

/**
 * Wraps lines longer than `width` at spaces. The rest of a line is placed under its second column (the text after two spaces
 * or more), or indented; a second column that starts too far right gets its own lines.
 */
export function fit(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => (line.length <= width ? line : broken(line, width)))
    .join('\n')
}

/** Joins the lines of a paragraph, which are broken only in the source. Indented lines stay. */
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

/** Not the space in `(env: NAME)` or `(default: value)`, which is easier to read on one line. */
const SPACE = /(?<!\((?:env|default):)\s+/

function fill(text: string, start: string, next: string, width: number): string[] {
  const lines: string[] = []
  let line = start
  let empty = true
  for (const word of text.split(SPACE)) {
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
