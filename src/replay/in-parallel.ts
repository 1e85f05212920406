/**
 * Runs `work` for each item in order, at most `concurrency` at once, until it returns false or throws. Then waits for the pending
 * ones. Takes an item only when its work starts.
 */
export async function inParallel<Item>(
  items: AsyncIterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<boolean>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let running = true
  const worker = async (): Promise<void> => {
    try {
      while (running) {
        const next = await iterator.next()
        // Another worker may have stopped meanwhile.
        if (next.done || !running) return
        if (!(await work(next.value))) running = false
      }
    } catch (error) {
      running = false
      throw error
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: concurrency }, worker))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}
