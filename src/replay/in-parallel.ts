/**
 * Has `work` done for each item in their order, at most so many at once, until it answers false or throws; what is under
 * way then is waited for. Items are taken only when their turn comes.
 */
export async function inParallel<Item>(
  items: Iterable<Item>,
  concurrency: number,
  work: (item: Item) => Promise<boolean>,
): Promise<void> {
  const iterator = items[Symbol.iterator]()
  let going = true
  const worker = async (): Promise<void> => {
    try {
      while (going) {
        const next = iterator.next()
        if (next.done) return
        if (!(await work(next.value))) going = false
      }
    } catch (error) {
      going = false
      throw error
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: concurrency }, worker))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}
