import { homedir } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import { Chalk } from 'chalk'
import truncatedWidth from 'fast-string-truncated-width'
import { printable } from '../../base/text.js'
import { wrap } from './wrap.js'
import type { Own } from './outside.js'

/** Always has styles: the output decides if they are printed. */
const CHALK = new Chalk({ level: 1 })
const RESET = '\u001b[0m'
/** A sequence for a style, or a character with its marks. */
const PIECE = /\p{Cc}\[\d+m|.\p{M}*/gsu
/** A styled word that is padded to a column. */
const LABEL = /^\p{Cc}\[\d+m(\P{Cc}*\S {2,})\p{Cc}/u

/** A line, or something to make one of. Plain text may come from outside, so it is escaped. */
export type Line = Text | Own | string

/**
 * Makes a line from a template. Inserted text is escaped, except a {@link Text}, whose styles stay: ``t`${bold(name)}
 * of ${repo}` ``.
 */
export function t(strings: TemplateStringsArray, ...inserted: readonly (Line | number)[]): Text {
  const [first = '', ...others] = strings
  return joined([first, ...others.flatMap((text, i) => [inserted[i] ?? '', text])])
}

/** Joins lines with a separator between them. */
export function joined(lines: readonly (Line | number)[], separator: Line = ''): Text {
  return new Text(lines.map((line) => textOf(line).ansi).join(textOf(separator).ansi))
}

/** Makes a {@link Text}, with plain text escaped. */
export function textOf(line: Line | number): Text {
  return line instanceof Text ? line : new Text(printable(String(line)))
}

function styled(style: 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan') {
  return (line: Line | number): Text => new Text(CHALK[style](textOf(line).ansi))
}

export const bold = styled('bold')
export const dim = styled('dim')
export const green = styled('green')
export const red = styled('red')
export const yellow = styled('yellow')
export const cyan = styled('cyan')

/** Indentation of the further lines of one without a label. Columns. */
const INDENT = 2

/**
 * One line for a terminal. Characters that could rewrite the display are escaped before it is measured. Widths are
 * columns: two for East Asian characters and emoji, none for combining marks.
 */
export class Text {
  /** Escaped text, with the terminal's sequences for its styles. */
  readonly ansi: string
  /** True for text to be copied, such as a payload's, which is never wrapped or cut. */
  readonly isWhole: boolean

  constructor(ansi: string, { isWhole = false }: { readonly isWhole?: boolean } = {}) {
    this.ansi = ansi
    this.isWhole = isWhole
  }

  get width(): number {
    return widthOf(this.ansi)
  }

  /** Text without styles. */
  toString(): string {
    return stripVTControlCharacters(this.ansi)
  }

  render(color: boolean): string {
    return color ? this.ansi : this.toString()
  }

  /** Returns the start in at most `width` columns, with `…` for the rest. */
  cut(width: number): Text {
    if (this.#fits(width)) return this
    if (width <= 0) return new Text('')
    let [shown, room] = ['', width - 1]
    for (const [piece] of this.ansi.matchAll(PIECE)) {
      room -= widthOf(piece)
      if (room < 0) break
      shown += piece
    }
    return new Text(`${shown}…${shown.includes('\u001b') ? RESET : ''}`)
  }

  /** Returns the end in at most `width` columns without styles, after a `…` if something is cut off. */
  cutStart(width: number): Text {
    if (this.width <= width) return this
    if (width <= 0) return new Text('')
    let rest = this.toString()
    while (widthOf(rest) >= width) rest = rest.replace(/^.\p{M}*/su, '')
    return new Text(`…${rest}`)
  }

  /** Adds spaces up to `width` columns. */
  pad(width: number): Text {
    return new Text(this.ansi + ' '.repeat(Math.max(0, width - this.width)))
  }

  /**
   * Wraps as {@link wrap} does. Without `indent`, further lines are indented a little more than this one, or as far as
   * the text after its label.
   */
  wrap(width: number, indent = this.#indent()): readonly Text[] {
    if (this.#fits(width)) return [this]
    return wrap(this.ansi, width, indent, widthOf).map((ansi) => new Text(ansi))
  }

  /** Unlimited lines are not measured. */
  #fits(width: number): boolean {
    return this.isWhole || width === Infinity || this.width <= width
  }

  #indent(): number {
    const [, label] = LABEL.exec(this.ansi) ?? []
    return label === undefined ? this.toString().search(/[^ ]|$/) + INDENT : widthOf(label)
  }
}

/** Text of ASCII and of relay's own signs, each of one column, as nearly every line is. */
const NARROW = /^[ -~…→✓✗│↻◦·]*$/

/** Width in columns. The library that knows all characters takes about 2 ms for its first text. */
function widthOf(ansi: string): number {
  const text = stripVTControlCharacters(ansi)
  return NARROW.test(text) ? text.length : truncatedWidth(text).width
}

/** Puts the cells of rows into columns, two spaces apart. */
export function table(rows: readonly (readonly Line[])[]): Text[] {
  const cells = rows.map((row) => row.map(textOf))
  const widths: number[] = []
  for (const row of cells)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.width)
  return cells.map((row) => {
    const last = row.findLastIndex(({ width }) => width > 0)
    return joined(
      row.slice(0, last + 1).map((cell, i) => (i === last ? cell : cell.pad(widths[i] ?? 0))),
      '  ',
    )
  })
}

/** A token of JSON: a string with its colon, a string, a number or literal, or punctuation and white space. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|([-\d.eE+]+|true|false|null)|([^"\w-]+)/g

/**
 * Formats pretty-printed JSON in colours, line by line, each indented. Its text is unchanged, and no line is wrapped.
 */
export function jsonLines(json: string, indent = ''): Text[] {
  return json.split('\n').map((line) => {
    const painted = [...line.matchAll(TOKEN)].map(([whole, text, colon, scalar]) => {
      if (text !== undefined) return colon === undefined ? green(text) : t`${cyan(text)}${dim(colon)}`
      return scalar === undefined ? dim(whole) : yellow(scalar)
    })
    return new Text(joined([indent, ...painted]).ansi, { isWhole: true })
  })
}

/** Formats a path with `~` for the user's home. */
export function tilde(file: string): string {
  const home = homedir()
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}
