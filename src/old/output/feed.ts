import type { TextStream } from '../context.js'
import type { Line } from './line.js'
import { textWidth } from './text-width.js'

/** Lines of a feed that belong together. */
export interface Block {
  /** Draws it again. False when it is beyond reach, since it has left the last rows of the screen: it stays as it was then. */
  redraw(options: { readonly isFinal: boolean }): boolean
}

interface Entry {
  readonly draw: (width: number) => readonly Line[]
  isFinal: boolean
  isBeyondReach: boolean
}

/** Rows at the bottom that can change: enough for what is pending, and never more than half of the screen. */
const MAX_ROWS = 12
/** Changes within this time are drawn at once; nobody sees the difference. Milliseconds. */
const DRAW_DELAY_MS = 25
/** For a terminal that does not say how large it is. */
const DEFAULT_SIZE = { columns: 80, rows: 24 }

/**
 * Lines on a terminal, in the order added; the last ones can change. What is final, with everything above it, is left
 * alone; so is what has left the last rows. Only the rows in between are ever cleared and written again.
 */
export class Feed implements Disposable {
  readonly #stream: TextStream
  readonly #paint: (line: Line) => string
  readonly #onEnd: () => void
  /** From the first entry that is not final on. */
  #entries: Entry[] = []
  /** The lines that these took when they were last drawn. */
  #drawn: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #onResize = (): void => this.#schedule()

  constructor(stream: TextStream, paint: (line: Line) => string, onEnd: () => void) {
    this.#stream = stream
    this.#paint = paint
    this.#onEnd = onEnd
    stream.on?.('resize', this.#onResize)
  }

  /** Adds lines at the end, drawn for the number of columns. */
  add(draw: (width: number) => readonly Line[], isFinal: boolean): Block {
    const entry: Entry = { draw, isFinal, isBeyondReach: false }
    this.#entries.push(entry)
    this.#schedule()
    return {
      redraw: (options) => {
        if (entry.isBeyondReach) return false
        entry.isFinal = options.isFinal
        this.#schedule()
        return true
      },
    }
  }

  /** Draws what has changed, and what is still pending as it is, for good. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#stream.off?.('resize', this.#onResize)
    this.#draw()
    this.#entries = []
    this.#drawn = []
    this.#onEnd()
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#draw(), DRAW_DELAY_MS)
  }

  #draw(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { columns, rows } = { ...DEFAULT_SIZE, ...sizeOf(this.#stream) }
    const blocks = this.#entries.map((entry) => ({
      entry,
      lines: entry.draw(columns).map((line) => this.#paint(line)),
    }))
    const text = [this.#clearing(columns), ...blocks.flatMap(({ lines }) => lines.map((line) => `${line}\n`))]
    this.#stream.write(text.join(''))
    const limit = Math.min(MAX_ROWS, Math.floor(rows / 2))
    let height = blocks.reduce((sum, { lines }) => sum + rowsOf(lines, columns), 0)
    while (blocks[0] && (blocks[0].entry.isFinal || height > limit)) {
      height -= rowsOf(blocks[0].lines, columns)
      blocks[0].entry.isBeyondReach = true
      blocks.shift()
    }
    this.#entries = blocks.map(({ entry }) => entry)
    this.#drawn = blocks.flatMap(({ lines }) => lines)
  }

  /** Clears what can change. A terminal that was made narrower has broken the lines; in rows that is what they take now. */
  #clearing(columns: number): string {
    const rows = rowsOf(this.#drawn, columns)
    return rows === 0 ? '' : `\r\u001b[${rows}A\u001b[J`
  }
}

function rowsOf(lines: readonly string[], columns: number): number {
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / columns)), 0)
}

function sizeOf({ columns, rows }: TextStream): { columns?: number; rows?: number } {
  return { ...(columns && { columns }), ...(rows && { rows }) }
}
