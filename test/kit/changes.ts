import { LIMIT_MS } from './limit.js'

/** Waits for what a stand-in sees. */
export class Changes {
  readonly #waiting = new Set<() => void>()
  readonly #saw: () => string

  /** `saw` tells what there is so far, for the error of a wait that fails. */
  constructor(saw: () => string) {
    this.#saw = saw
  }

  /** Has everyone that waits look again. */
  changed(): void {
    for (const look of this.#waiting) look()
  }

  /** Resolves once it is so. @throws Error with what there is, after so many milliseconds. */
  until(isSo: () => boolean, wanted: string, within = LIMIT_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
      }
      const look = (): void => {
        if (!isSo()) return
        end()
        resolve()
      }
      const timer = setTimeout(() => {
        end()
        reject(new Error(`no ${wanted} within ${within} ms; there is: ${this.#saw()}`))
      }, within)
      this.#waiting.add(look)
      look()
    })
  }
}
