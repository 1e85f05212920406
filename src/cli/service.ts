import { Queue } from '../base/queue.js'

/** Items that may wait to be printed. */
const MAX_ITEMS = 1000

/** Arguments of a service: `signal` stops it, `push` emits an item, and `end` stops it from within. */
export interface ServiceRun<Item> {
  readonly signal: AbortSignal
  readonly push: (item: Item) => void
  readonly end: () => void
}

/**
 * Runs a service, and yields what happens. It never waits for its reader: the service continues while items wait. It
 * stops when the reader leaves.
 * @param dropped makes an item of the number of those that came faster than they could be printed
 */
export async function* runService<Item>(
  stopped: AbortSignal,
  serve: (run: ServiceRun<Item>) => Promise<void>,
  dropped: (count: number) => Item,
): AsyncGenerator<Item, void> {
  const items = new Queue<Item>(MAX_ITEMS, dropped)
  const left = new AbortController()
  const end = (): void => left.abort()
  const signal = AbortSignal.any([stopped, left.signal])
  const serving = serve({ signal, push: items.push, end }).finally(items.end)
  // Thrown below, once the reader has all items.
  serving.catch(() => {})
  try {
    yield* items
  } finally {
    end()
    await serving
  }
}
