/**
 * Returns a function that reads a value when it is first called, and again once the last one is `maxAge` milliseconds old. Calls
 * during a read share it, so that at most one is under way. A failure is not kept: the next call reads again.
 */
export function createCached<Value>(maxAge: number, read: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined
  let until = Infinity
  return () => {
    if (value && performance.now() < until) return value
    until = Infinity
    const reading = read()
    value = reading
    reading.then(
      () => (until = performance.now() + maxAge),
      () => (until = -Infinity),
    )
    return reading
  }
}
