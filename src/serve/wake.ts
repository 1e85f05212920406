/** Between two looks at the clocks, in milliseconds. */
const LOOK_MS = 10_000
/** A longer gap means that the machine slept, in milliseconds. Timers of a busy process come seconds late, not a minute. */
const GAP_MS = 60_000

/** Calls `listener` after the machine, or this process, has slept for a minute or more. Returns a function that ends it. */
export function onWake(listener: () => void): () => void {
  let before = Date.now()
  const timer = setInterval(() => {
    const slept = Date.now() - before - LOOK_MS
    before = Date.now()
    if (slept >= GAP_MS) listener()
  }, LOOK_MS).unref()
  return () => clearInterval(timer)
}
