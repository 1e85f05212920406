const MOST_A_SECOND = 2
const SECOND = 1000

/**
 * For what anybody can bring about: of many in a second the first two are told by `tell`, the others are counted, and the
 * count is told by `rest` when the second is over. Keeps no process running.
 */
export function createSparing(rest: (count: number) => void): (tell: () => void) => void {
  let count = 0
  const endSecond = (): void => {
    const untold = count - MOST_A_SECOND
    count = 0
    if (untold > 0) rest(untold)
  }
  return (tell) => {
    if (++count === 1) setTimeout(endSecond, SECOND).unref()
    if (count <= MOST_A_SECOND) tell()
  }
}
