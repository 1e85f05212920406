import { deadline } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import type { Summary } from '../../../journal/types.js'
import type { Journal } from '../../../journal/journal.js'
import { hasFailed } from '../../../journal/types.js'
import type { Context } from '../../context.js'
import { awaitForwarded } from '../../journal/forwarded.js'
import type { Output } from '../../output/output.js'

/** How long to wait for the targets: as long as `relay wait`. */
const LIMIT_MS = 300_000
/** Entries that are read at once. */
const PAGE = 1000
/** Entries that an error names. */
const MAX_NAMED = 10

/** Follows deliveries that are sent to the instance, until they were forwarded. */
export interface ForwardWatch {
  /** Adds a delivery that the instance has answered 200, so that the journal has it. */
  readonly accepted: (deliveryId: string) => void
  /**
   * Waits until every one was forwarded to all its targets.
   * @throws RelayError `target_failed` with the entries that failed at a target, `timed_out` after 5 minutes.
   */
  end(context: Pick<Context, 'signal'>, output: Output): Promise<void>
}

export async function watchForwards(
  journal: Pick<Journal, 'newest' | 'after' | 'select' | 'summaries'>,
): Promise<ForwardWatch> {
  const before = await journal.newest()
  const ids = new Set<string>()
  return {
    accepted: (deliveryId) => void ids.add(deliveryId),
    async end({ signal }, output) {
      const end = performance.now() + LIMIT_MS
      const entries = await findEntries(journal, ids, before, deadline(LIMIT_MS, signal))
      const failed: number[] = []
      for (const entry of entries) {
        const summary = await awaitForwarded(journal, entry, end - performance.now(), { signal })
        if (!summary)
          throw new RelayError('timed_out', `#${entry.n} was received, but not forwarded within 5m`)
        if (hasFailed(summary)) failed.push(entry.n)
      }
      if (failed.length > 0) throw targetFailed(failed, entries.length)
      if (entries.length > 0) output.say(`${entries.length} forwarded`)
    },
  }
}

/** The entries with these delivery ids, oldest first: new ones, and of the others those that were sent again. */
async function findEntries(
  journal: Pick<Journal, 'after' | 'select'>,
  ids: ReadonlySet<string>,
  before: number,
  signal: AbortSignal,
): Promise<readonly Summary[]> {
  const missing = new Set(ids)
  const found: Summary[] = []
  const take = (summary: Summary): void => {
    if (missing.delete(summary.deliveryId)) found.push(summary)
  }
  for (let last = before; missing.size > 0;) {
    const page = await journal.after(last, PAGE)
    for (const summary of page) take(summary)
    if (page.length < PAGE) break
    last = page.at(-1)?.n ?? last
  }
  if (missing.size > 0)
    for await (const summary of journal.select({ before: before + 1 })) {
      signal.throwIfAborted()
      take(summary)
      if (missing.size === 0) break
    }
  return found.toSorted((one, other) => one.n - other.n)
}

function targetFailed(failed: readonly number[], total: number): RelayError {
  const names = failed.slice(0, MAX_NAMED).map((n) => `#${n}`)
  const more = failed.length > MAX_NAMED ? ', …' : ''
  return new RelayError(
    'target_failed',
    `${failed.length} of ${total} failed at a target: ${names.join(', ')}${more}`,
  )
}
