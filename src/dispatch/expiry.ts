import type { Log } from '../base/log.js'
import type { Journal } from '../journal/journal.js'
import type { Guard } from '../journal/guarded-write.js'
import { expired } from './policy.js'

/** Enough to share a flush, few enough to let other writes in between. */
const BATCH_SIZE = 100

interface ExpiringTarget {
  readonly id: string
  readonly label: string
  /** Refuses what is recorded when another process has the queue. */
  readonly fence?: Guard | undefined
}

/** Makes the function that fails entries which waited too long for a target. It returns those that could not be recorded. */
export function createExpiry(
  journal: Pick<Journal, 'forwards' | 'finish'>,
  { id, label, fence }: ExpiringTarget,
  log: Log,
): (numbers: readonly number[]) => Promise<readonly number[]> {
  const failOne = async (n: number): Promise<boolean> => {
    try {
      const forward = (await journal.forwards(n))[id]
      if (forward?.status === 'waiting') await journal.finish(n, id, expired(forward), fence)
      return true
    } catch {
      return false
    }
  }
  return async (numbers) => {
    const left: number[] = []
    for (let at = 0; at < numbers.length; at += BATCH_SIZE) {
      const some = numbers.slice(at, at + BATCH_SIZE)
      const done = await Promise.all(some.map(failOne))
      left.push(...some.filter((_, i) => !done[i]))
    }
    const ended = numbers.length - left.length
    if (ended > 0)
      log.warn(`${label}: ${ended} ${ended === 1 ? 'delivery' : 'deliveries'} older than 24 h failed`)
    if (left.length > 0)
      log.error(`${label}: ${left.length} that are older than 24 h could not be recorded yet`)
    return left
  }
}
