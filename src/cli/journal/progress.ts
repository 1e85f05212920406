import { labelOf } from '../../dispatch/route.js'
import type { Summary } from '../../journal/delivery.js'
import type { Attempt, HandOn } from '../../journal/hand-on.js'
import type { Journal } from '../../journal/journal.js'

/** How far an entry got with one target. */
export interface TargetProgress {
  /** The target as it may be shown: without the password and query of an address. */
  readonly label: string
  readonly handOn: HandOn
  /** In the order made; those repeated in the same way are one. */
  readonly attempts: readonly Attempt[]
}

/** How far an entry got with each of its targets, in the order in which it was given them. */
export function progressOf(
  journal: Pick<Journal, 'attempts'>,
  { n, handOns }: Pick<Summary, 'n' | 'handOns'>,
): readonly TargetProgress[] {
  const targets = Object.entries(handOns)
  const attempts = targets.length === 0 ? [] : journal.attempts(n)
  return targets.map(([id, handOn]) => ({
    label: labelOf(id),
    handOn,
    attempts: attempts.filter(({ target }) => target === id),
  }))
}
