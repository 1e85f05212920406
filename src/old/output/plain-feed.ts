import type { Block, Feed } from './feed.js'
import type { Line } from './line.js'
import type { Output } from './output.js'

/** How long lines may change before they are printed as they are. Milliseconds. */
const DELAY_MS = 1000

/** A feed where nothing can be drawn again: lines are printed once, when they are final, or as they are after a second. */
export class PlainFeed implements Pick<Feed, 'add'>, Disposable {
  readonly #output: Pick<Output, 'say' | 'messageWidth'>
  readonly #pending = new Set<() => void>()

  constructor(output: Pick<Output, 'say' | 'messageWidth'>) {
    this.#output = output
  }

  add(draw: (width: number) => readonly Line[], isFinal: boolean): Block {
    const print = (): void => {
      clearTimeout(timer)
      this.#pending.delete(print)
      for (const line of draw(this.#output.messageWidth)) this.#output.say(line)
    }
    let timer: NodeJS.Timeout | undefined
    if (isFinal) print()
    else {
      this.#pending.add(print)
      timer = setTimeout(print, DELAY_MS)
    }
    return {
      redraw: (options) => {
        const isPending = this.#pending.has(print)
        if (isPending && options.isFinal) print()
        return isPending
      },
    }
  }

  /** Prints what is pending as it is. */
  [Symbol.dispose](): void {
    for (const print of this.#pending) print()
  }
}
