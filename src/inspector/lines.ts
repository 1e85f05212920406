import { formatStatus, labelOf, shortNames } from '../dispatch/routes.js'
import type { Summary } from '../journal/types.js'
import type { Forward } from '../journal/types.js'
import type { LastAttempt } from '../journal/types.js'
import { editedFrom } from '../journal/types.js'
import { ignoredText } from '../journal/types.js'
import { subjectOf } from '../journal/types.js'
import type { DeliveryLine, TargetMark } from './api.js'
import type { InspectorParts } from './parts.js'

/** What lines are made from. */
export type LineParts = Pick<InspectorParts, 'journal' | 'routing' | 'running'>

/** The lines of a list, in the order of the entries. */
export async function linesOf(
  parts: LineParts,
  summaries: readonly Summary[],
): Promise<readonly DeliveryLine[]> {
  const attempted = summaries.filter(({ forwards }) => Object.keys(forwards).length > 0)
  const attempts = await parts.journal.lastAttempts(attempted.map(({ n }) => n))
  const last = new Map(attempts.map((attempt) => [keyOf(attempt.n, attempt.target), attempt]))
  const nameOf = targetNames(parts, summaries)
  const down = downTargets(parts)
  return summaries.map((summary) => ({
    ...baseOf(summary),
    targets: Object.entries(summary.forwards).map(([id, forward]) =>
      markOf(nameOf(id), forward, last.get(keyOf(summary.n, id)), down.has(id)),
    ),
  }))
}

const keyOf = (n: number, target: string): string => `${n} ${target}`

/** The short names of targets: those of the routes, and of others that entries had. */
export function targetNames(
  { routing }: Pick<LineParts, 'routing'>,
  summaries: readonly Pick<Summary, 'forwards'>[],
): (id: string) => string {
  const others = new Set(summaries.flatMap(({ forwards }) => Object.keys(forwards)))
  const names = shortNames([...routing.routes, ...[...others].map((id) => ({ id }))])
  return (id) => names.get(id) ?? labelOf(id)
}

/** The ids of the targets that cannot be reached, or are no longer configured. */
function downTargets({ running }: Pick<LineParts, 'running'>): ReadonlySet<string> {
  return new Set(
    running.targets().flatMap(({ id, state }) => (state === 'up' || state === 'elsewhere' ? [] : [id])),
  )
}

function baseOf(summary: Summary): Omit<DeliveryLine, 'targets'> {
  const { n, receivedAt, event, action, repo, size, duplicates, restored, ignoredBy } = summary
  const from = editedFrom(summary)
  return {
    n,
    receivedAt,
    event,
    action,
    repo,
    subject: subjectOf(summary),
    size,
    duplicates,
    ...(ignoredBy !== undefined && { ignored: ignoredText(ignoredBy) }),
    ...(restored && { viaTunnel: true }),
    ...(from !== undefined && { editedFrom: from }),
  }
}

function markOf(
  name: string,
  { status, reason }: Forward,
  last: LastAttempt | undefined,
  isDown: boolean,
): TargetMark {
  return {
    name,
    status,
    ...(isDown && status === 'waiting' && { down: true }),
    ...(last && last.status !== null && { answer: formatStatus(last.target, last.status) }),
    ...(last && { ms: last.ms }),
    ...(reason !== undefined && { reason }),
  }
}
