import type { Log } from '../base/log.js'
import type { Journal } from '../journal/journal.js'
import { tooOld } from './policy.js'

/** Enough to share a flush, few enough to let other writes in between. */
const AT_ONCE = 100

/** Makes the function that ends entries which have waited too long for a target; it gives those that could not be written. */
export function createExpiry(
  journal: Pick<Journal, 'handOns' | 'finish'>,
  { id, label }: { readonly id: string; readonly label: string },
  log: Log,
): (numbers: readonly number[]) => Promise<readonly number[]> {
  const expireOne = async (n: number): Promise<boolean> => {
    try {
      const handOn = journal.handOns(n)[id]
      if (handOn?.state === 'waiting') await journal.finish(n, id, tooOld(handOn))
      return true
    } catch {
      return false
    }
  }
  return async (numbers) => {
    const left: number[] = []
    for (let at = 0; at < numbers.length; at += AT_ONCE) {
      const some = numbers.slice(at, at + AT_ONCE)
      const done = await Promise.all(some.map(expireOne))
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
