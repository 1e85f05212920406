/** A clock that a test sets, in milliseconds since 1970-01-01 UTC. */
export interface TestClock {
  readonly now: () => number
  advance(ms: number): void
  set(ms: number): void
}

/** A clock that stands still until the test moves it. `clock().now` is what programs and sandboxes take as their clock. */
export function clock(start = Date.UTC(2030, 0, 1)): TestClock {
  let time = start
  return {
    now: () => time,
    advance: (ms) => void (time += ms),
    set: (ms) => void (time = ms),
  }
}
