import { type Cancellable, sleep } from '../../base/abort.js'
import type { Summary } from '../../journal/types.js'
import type { Journal } from '../../journal/journal.js'

/** Short enough for a person and a script; each poll is some fifty microseconds of work. */
export const POLL_MS = 100
/** Bounds the memory for a burst of entries. */
const MAX_BATCH = 1000

/**
 * The entries after number `after`, in order: existing ones, then those that any process appends, until `signal` aborts.
 * Yields an empty batch about ten times a second.
 * @throws AbortError as {@link sleep}.
 */
export async function* poll(
  journal: Pick<Journal, 'after'>,
  after: number,
  options: Cancellable,
): AsyncGenerator<readonly Summary[], never> {
  for (let last = after; ;) {
    const batch = await journal.after(last, MAX_BATCH)
    last = batch.at(-1)?.n ?? last
    yield batch
    await sleep(batch.length < MAX_BATCH ? POLL_MS : 0, options)
  }
}
