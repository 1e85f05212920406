import { type Cancellable, sleep } from '../../base/abort.js'
import type { Summary } from '../../journal/delivery.js'
import type { Journal } from '../../journal/journal.js'
import { EVERY } from './poll.js'

/**
 * An entry as it stands once none of its targets waits for it any more; undefined when that is not so within `limit`
 * milliseconds.
 * @throws AbortError when `signal` aborts.
 */
export async function handedOn(
  journal: Pick<Journal, 'summaries'>,
  entry: Summary,
  limit: number,
  options: Cancellable,
): Promise<Summary | undefined> {
  const end = performance.now() + limit
  for (let last = entry; ; [last = last] = journal.summaries({ from: entry.n, to: entry.n })) {
    if (!Object.values(last.handOns).some(({ state }) => state === 'waiting')) return last
    if (performance.now() >= end) return undefined
    await sleep(EVERY, options)
  }
}
