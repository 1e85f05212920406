import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/**
 * Watches the event loop of this process. Measures the main thread's own processor time, of which other programs take
 * none, as they do of the time that passes. Linux only.
 */
export function watchTurns() {
  // What other tests of this process left, so that collecting it takes none of the turns.
  collectGarbage()
  let before = processorTime()
  let longest = 0
  let watching = true
  const look = (): void => {
    const now = processorTime()
    longest = Math.max(longest, now - before)
    before = now
  }
  const watch = (): void => {
    look()
    if (watching) setImmediate(watch)
  }
  watch()
  return {
    /** Milliseconds of the longest turn since the last time, the one under way included. */
    longest(): number {
      look()
      const found = longest
      longest = 0
      return found
    },
    [Symbol.dispose]: () => void (watching = false),
  }
}

/** Milliseconds. The first thread has the id of the process. */
function processorTime(): number {
  const [nanoseconds = ''] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e6
}
