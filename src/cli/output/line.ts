import { printable } from '../../base/printable.js'

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

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

/** The text to write: what could rewrite the display is escaped first, then the styles are applied. */
export function render(line: Line, painter: Painter): string {
  if (typeof line === 'string') return printable(line)
  return 'style' in line
    ? painter[line.style](printable(line.text))
    : line.map((part) => render(part, painter)).join('')
}
