import { labelOf, publicId } from '../../dispatch/routes.js'
import type { Summary } from '../../journal/types.js'
import type { Attempt, Forward } from '../../journal/types.js'
import type { Journal } from '../../journal/journal.js'

/** The state of forwarding an entry to one target. */
export interface TargetProgress {
  /** The target's {@link publicId}. */
  readonly id: string
  /** The target without the password and query of an address. */
  readonly label: string
  readonly forward: Forward
  /** In order; repeated attempts with the same outcome are one, with a count. */
  readonly attempts: readonly Attempt[]
}

/** The state of forwarding an entry to each of its targets, in the order of the routes. */
export async function progressOf(
  journal: Pick<Journal, 'attempts'>,
  { n, forwards }: Pick<Summary, 'n' | 'forwards'>,
): Promise<readonly TargetProgress[]> {
  const targets = Object.entries(forwards)
  const attempts = targets.length === 0 ? [] : await journal.attempts(n)
  return targets.map(([id, forward]) => ({
    id: publicId(id),
    label: labelOf(id),
    forward,
    attempts: attempts.filter(({ target }) => target === id),
  }))
}
