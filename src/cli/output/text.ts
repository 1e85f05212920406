import { homedir } from 'node:os'
import { Chalk } from 'chalk'
import truncatedWidth from 'fast-string-truncated-width'
import { printable } from '../../base/text.js'

/** Whether a stream shows styles is for the output to say. */
const CHALK = new Chalk({ level: 1 })

export type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan'

interface Part {
  /** Escaped. */
  readonly text: string
  readonly style?: Style | undefined
}

/** A line, or something to make one of. Plain text may come from outside: it is escaped. */
export type Line = Text | string

/** Escapes what is put in, unless it is a {@link Text}, whose styles stay: ``t`${bold(name)} of ${repo}` ``. */
export function t(strings: TemplateStringsArray, ...inserted: readonly (Line | number)[]): Text {
  const [first = '', ...others] = strings
  return join([first, ...others.flatMap((text, i) => [inserted[i] ?? '', text])])
}

/** The lines one after the other, with the separator between them. */
export function join(lines: readonly (Line | number)[], separator: Line = ''): Text {
  const between = textOf(separator).parts
  return new Text(lines.flatMap((line, i) => [...(i === 0 ? [] : between), ...textOf(line).parts]))
}

/** Plain text escaped; a {@link Text} as it is. */
export function textOf(line: Line | number): Text {
  return line instanceof Text ? line : new Text([{ text: printable(String(line)) }])
}

/** In one style; parts of a {@link Text} that have one keep theirs. */
function styled(style: Style): (line: Line | number) => Text {
  return (line) => new Text(textOf(line).parts.map((part) => ({ style, ...part })))
}

export const bold = styled('bold')
export const dim = styled('dim')
export const green = styled('green')
export const red = styled('red')
export const yellow = styled('yellow')
export const cyan = styled('cyan')

/** Sets a further line off from the next one. */
const MIN_INDENT = 2
/** A word that is padded to a column. */
const LABEL = /\S {2,}$/

/**
 * One line for a terminal: everything in it that could rewrite the display is escaped, before it is measured. Widths are columns: two for
 * East Asian characters and emoji, none for combining marks.
 */
export class Text {
  readonly parts: readonly Part[]
  /** Never broken or cut by relay: text to be copied, such as a payload's. */
  readonly isWhole: boolean

  constructor(parts: readonly Part[], { isWhole = false }: { readonly isWhole?: boolean } = {}) {
    this.parts = parts.filter(({ text }) => text !== '')
    this.isWhole = isWhole
  }

  get width(): number {
    return this.parts.reduce((sum, { text }) => sum + widthOf(text), 0)
  }

  /** Without styles. */
  toString(): string {
    return this.parts.map(({ text }) => text).join('')
  }

  /** With the styles as terminal sequences, or without. */
  render(color: boolean): string {
    if (!color) return this.toString()
    return this.parts.map(({ text, style }) => (style ? CHALK[style](text) : text)).join('')
  }

  /** The start in at most `width` columns; what is cut off is shown as `…`. */
  cut(width: number): Text {
    if (this.isWhole || this.width <= width) return this
    if (width <= 0) return new Text([])
    const shown: Part[] = []
    let room = width - 1
    for (const part of this.parts) {
      const wide = widthOf(part.text)
      if (wide > room) return new Text([...shown, { ...part, text: `${startOf(part.text, room)}…` }])
      shown.push(part)
      room -= wide
    }
    return this
  }

  /** The end in at most `width` columns, after a `…` if something is cut off. */
  cutStart(width: number): Text {
    if (this.width <= width) return this
    if (width <= 0) return new Text([])
    const shown: Part[] = []
    let room = width - 1
    for (const part of this.parts.toReversed()) {
      const wide = widthOf(part.text)
      if (wide > room) return new Text([{ ...part, text: `…${endOf(part.text, room)}` }, ...shown])
      shown.unshift(part)
      room -= wide
    }
    return this
  }

  /** With spaces up to `width` columns. */
  pad(width: number): Text {
    const missing = width - this.width
    return missing > 0 ? new Text([...this.parts, { text: ' '.repeat(missing) }]) : this
  }

  /**
   * Broken at spaces into lines of at most `width` columns, the further ones indented by `indent` (by default a little more than the
   * line itself, or as far as what follows its label), or by less where a long word then fits. A longer word, such as an address to copy,
   * stays whole.
   */
  wrap(width: number, indent = this.#indent()): readonly Text[] {
    if (this.isWhole || this.width <= width) return [this]
    const lines: Part[][] = [[]]
    let used = 0
    let gap: Part[] = []
    for (const word of wordsOf(this.parts)) {
      if (word[0]?.text.startsWith(' ')) {
        gap = word
        continue
      }
      const [gapWidth, wide] = [new Text(gap).width, new Text(word).width]
      if (used > 0 && used + gapWidth + wide > width) {
        const start = Math.min(indent, Math.max(MIN_INDENT, width - wide))
        lines.push([{ text: ' '.repeat(start) }, ...word])
        used = start + wide
      } else {
        lines.at(-1)?.push(...gap, ...word)
        used += gapWidth + wide
      }
      gap = []
    }
    return lines.map((parts) => new Text(parts))
  }

  #indent(): number {
    const [first, ...others] = this.parts
    const text = first?.text ?? ''
    const isLabel = others.length > 0 && LABEL.test(text)
    return isLabel ? widthOf(text) : text.search(/[^ ]|$/) + MIN_INDENT
  }
}

/** The words, which can have several styles, and the spaces between them. */
function wordsOf(parts: readonly Part[]): Part[][] {
  const words: Part[][] = []
  let wasBlank: boolean | undefined
  for (const { text, style } of parts)
    for (const piece of text.split(/( +)/).filter((one) => one !== '')) {
      const isBlank = piece.startsWith(' ')
      if (isBlank === wasBlank) words.at(-1)?.push({ text: piece, style })
      else words.push([{ text: piece, style }])
      wasBlank = isBlank
    }
  return words
}

/** The columns of text that is escaped. */
function widthOf(text: string): number {
  return NARROW.test(text) ? text.length : truncatedWidth(text).width
}

/** The usual case, which needs no tables of characters: ASCII, and the signs of relay's own texts. */
const NARROW = /^[ -~–…→│·✓✗↻◦“”’]*$/

/** The start of escaped text in at most so many columns. */
function startOf(text: string, width: number): string {
  return NARROW.test(text) ? text.slice(0, width) : fitting(graphemesOf(text), width).join('')
}

function endOf(text: string, width: number): string {
  if (NARROW.test(text)) return text.slice(text.length - width)
  return fitting(graphemesOf(text).toReversed(), width).toReversed().join('')
}

/** The segmenter is made only here: it takes as long as the start of a program. */
function graphemesOf(text: string): readonly string[] {
  const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text)
  return [...graphemes].map(({ segment }) => segment)
}

/** As many of the characters as fit. */
function fitting(characters: readonly string[], width: number): readonly string[] {
  let used = 0
  const end = characters.findIndex((character) => (used += widthOf(character)) > width)
  return end === -1 ? characters : characters.slice(0, end)
}

/** Rows with their cells in columns, two spaces apart. */
export function table(rows: readonly (readonly Line[])[]): Text[] {
  const cells = rows.map((row) => row.map(textOf))
  const widths: number[] = []
  for (const row of cells)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.width)
  return cells.map((row) => {
    const last = row.findLastIndex(({ width }) => width > 0)
    return join(
      row.slice(0, last + 1).map((cell, i) => (i === last ? cell : cell.pad(widths[i] ?? 0))),
      '  ',
    )
  })
}

/** A string with its colon, a string, a number or literal; what is left is punctuation and white space. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|([-\d.eE+]+|true|false|null)|([^"\w-]+)/g

/** Pretty-printed JSON in colours, line by line, each indented. Its text is not changed, and no line is broken. */
export function jsonLines(json: string, indent = ''): Text[] {
  return json.split('\n').map((line) => {
    const painted = [...line.matchAll(TOKEN)].map(([whole, text, colon, scalar]) => {
      if (text !== undefined) return colon === undefined ? green(text) : t`${cyan(text)}${dim(colon)}`
      return scalar === undefined ? dim(whole) : yellow(scalar)
    })
    return new Text(join([indent, ...painted]).parts, { isWhole: true })
  })
}

/** A path with `~` for the user's home. */
export function tilde(file: string): string {
  const home = homedir()
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}
