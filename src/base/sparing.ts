import type { Clock } from './time.js'

const MOST_A_SECOND = 2

/**
 * For what anybody can bring about: of many in a second the first two are told by `tell`, the others are counted, and the
 * count told by `rest` once a second is over and another comes.
 */
export function createSparing(clock: Clock, rest: (count: number) => void): (tell: () => void) => void {
  let since = -Infinity
  let told = 0
  let untold = 0
  return (tell) => {
    const now = clock()
    if (now - since >= 1000 || now < since) {
      if (untold > 0) rest(untold)
      since = now
      told = untold = 0
    }
    if (told === MOST_A_SECOND) {
      untold++
      return
    }
    told++
    tell()
  }
}
