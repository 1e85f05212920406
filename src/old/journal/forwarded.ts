import { type Cancellable, sleep } from '../../base/abort.js'
import type { Summary } from '../../journal/types.js'
import type { Journal } from '../../journal/journal.js'
import { POLL_MS } from './poll.js'

/**
 * Waits until forwarding an entry has succeeded or failed at each of its targets, and returns its new summary; undefined if
 * that takes longer than `limit` milliseconds.
 * @throws AbortError when `signal` aborts.
 */
export async function awaitForwarded(
  journal: Pick<Journal, 'summaries'>,
  entry: Summary,
  limit: number,
  options: Cancellable,
): Promise<Summary | undefined> {
  const end = performance.now() + limit
  for (let last = entry; ; [last = last] = await journal.summaries([entry.n])) {
    if (!Object.values(last.forwards).some(({ status: state }) => state === 'waiting')) return last
    if (performance.now() >= end) return undefined
    await sleep(POLL_MS, options)
  }
}
