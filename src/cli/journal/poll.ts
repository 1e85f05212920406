import { type Cancellable, sleep } from '../../base/abort.js'
import type { Summary } from '../../journal/delivery.js'
import type { Journal } from '../../journal/journal.js'

/** Soon enough for a person and for a script, and some fifty microseconds of work. Milliseconds. */
export const EVERY = 100
/** Bounds what is in memory when much has come at once. */
const AT_ONCE = 1000

/**
 * The entries after number `after`, in order: those that are there, then those that any process appends, until `signal`
 * aborts. Also gives nothing, `[]`, about ten times a second.
 * @throws AbortError as {@link sleep}.
 */
export async function* poll(
  journal: Pick<Journal, 'summaries'>,
  after: number,
  options: Cancellable,
): AsyncGenerator<readonly Summary[], never> {
  for (let last = after; ;) {
    const batch = [...journal.summaries({ from: last + 1, limit: AT_ONCE })]
    last = batch.at(-1)?.n ?? last
    yield batch
    await sleep(batch.length < AT_ONCE ? EVERY : 0, options)
  }
}
