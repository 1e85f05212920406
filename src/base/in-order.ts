/**
 * Returns a function for promises of work that runs in parallel. Each settles as its promise does, but not before those that were
 * given earlier, so that what follows happens in the order of the calls.
 */
export function createOrder(): <Result>(work: Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = Promise.allSettled([last, work]).then(() => work)
    last = next.catch(() => {})
    return next
  }
}
