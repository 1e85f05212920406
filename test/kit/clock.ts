/** A clock that stands still until the test moves it, in milliseconds since 1970-01-01 UTC. `clock().now` is what programs and sandboxes take as their clock. */
export function clock(start = Date.UTC(2030, 0, 1)) {
  let time = start
  return {
    now: (): number => time,
    advance: (ms: number) => void (time += ms),
    set: (ms: number) => void (time = ms),
  }
}
