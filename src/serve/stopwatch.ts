/** The milliseconds since it was started. */
export type Stopwatch = () => number

/**
 * Milliseconds since it was started, by whichever clock counted more: the monotonic clock stops while a machine sleeps, the wall clock
 * can be set back.
 */
export function startStopwatch(): Stopwatch {
  const [wall, ran] = [Date.now(), performance.now()]
  return () => Math.max(Date.now() - wall, performance.now() - ran)
}
