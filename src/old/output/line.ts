import { printable } from '../../base/printable.js'
import { cut, textWidth } from './text-width.js'

const STYLES = ['bold', 'dim', 'green', 'red', 'yellow', 'cyan'] as const
type Style = (typeof STYLES)[number]

/** One line for a person: text, text in a style, or a list of such parts. Its text may come from outside. */
export type Line = string | { readonly style: Style; readonly text: string } | readonly Line[]

/** Applies the styles to text, or leaves it plain. */
export type Painter = Readonly<Record<Style, (text: string) => string>>

const styled =
  (style: Style) =>
  (text: string): Line => ({ style, text })

export const bold = styled('bold')
export const dim = styled('dim')
export const green = styled('green')
export const red = styled('red')
export const yellow = styled('yellow')
export const cyan = styled('cyan')

/** The text to write: what could rewrite the display is escaped first, then the styles are applied. */
export function render(line: Line, painter: Painter): string {
  if (typeof line === 'string') return printable(line)
  return 'style' in line
    ? painter[line.style](printable(line.text))
    : line.map((part) => render(part, painter)).join('')
}

/** The text without its styles; what could rewrite the display is escaped. */
export function lineText(line: Line): string {
  if (typeof line === 'string') return printable(line)
  return 'style' in line ? printable(line.text) : line.map(lineText).join('')
}

/** The columns that a line takes on a terminal. */
export function lineWidth(line: Line): number {
  if (typeof line === 'string') return textWidth(printable(line))
  if ('style' in line) return textWidth(printable(line.text))
  let width = 0
  for (const part of line) width += lineWidth(part)
  return width
}

/** The line in at most `width` columns; what is cut off is shown as `…`. */
export function cutLine(line: Line, width: number): Line {
  if (width === Infinity || lineWidth(line) <= width) return line
  const shown: Line[] = []
  let room = width
  for (const part of partsOf(line)) {
    const wide = textWidth(part.text)
    // One column stays for the sign, since more follows.
    if (wide < room) shown.push(part.line(part.text))
    else return [...shown, part.line(cut(part.text, room, true))]
    room -= wide
  }
  return shown
}

/** The line, with spaces up to `width`. */
export function padLine(line: Line, width: number): Line {
  const missing = width - lineWidth(line)
  return missing > 0 ? [line, ' '.repeat(missing)] : line
}

/**
 * The line broken at spaces into lines of at most `width` columns, the further ones indented by `indent` (by default
 * a little more than the line itself, or as far as what follows its label), or by less where a long word then fits. A
 * longer word, such as an address to copy, stays whole.
 */
export function wrapLine(line: Line, width: number, indent = indentOf(line)): readonly Line[] {
  if (width === Infinity || lineWidth(line) <= width) return [line]
  const lines: Line[][] = [[]]
  let used = 0
  let gap: Line = ''
  for (const part of partsOf(line))
    for (const piece of part.text.split(/( +)/).filter((text) => text !== '')) {
      const wide = textWidth(piece)
      if (piece.trim() === '') {
        gap = [gap, part.line(piece)]
        continue
      }
      const gapWidth = lineWidth(gap)
      if (used > 0 && used + gapWidth + wide > width) {
        const start = Math.min(indent, Math.max(MIN_INDENT, width - wide))
        lines.push([' '.repeat(start), part.line(piece)])
        used = start + wide
      } else {
        lines.at(-1)?.push(gap, part.line(piece))
        used += gapWidth + wide
      }
      gap = ''
    }
  return lines
}

function indentOf(line: Line): number {
  const [first, ...others] = partsOf(line)
  const text = first?.text ?? ''
  const isLabel = others.length > 0 && LABEL.test(text)
  return isLabel ? textWidth(text) : text.search(/[^ ]|$/) + MIN_INDENT
}

/** A word that is padded to a column. */
const LABEL = /\S {2,}$/

/** Sets a further line off from the next one. */
const MIN_INDENT = 2

interface Part {
  /** Escaped. */
  readonly text: string
  line(text: string): Line
}

function partsOf(line: Line): readonly Part[] {
  if (typeof line === 'string') return [{ text: printable(line), line: (text) => text }]
  if (!('style' in line)) return line.flatMap(partsOf)
  const { style } = line
  return [{ text: printable(line.text), line: (text) => ({ style, text }) }]
}
