import { execute, fetchRows, type Statement, type Tx } from '../store/sql.js'
import type { ForwardStatus } from './types.js'

/** A target of a route, with the user's name for it. */
export interface NamedTargetId {
  readonly id: string
  readonly name?: string | undefined
}

/** Leaves out the names that several targets have: these identify none. */
export function identified(targets: readonly NamedTargetId[]): readonly NamedTargetId[] {
  const isShared = ({ id, name }: NamedTargetId): boolean =>
    targets.some((other) => other.name === name && other.id !== id)
  return targets.map((target) =>
    isShared(target) ? { id: target.id } : { id: target.id, name: target.name },
  )
}

/** The forwards of the target that had a name before, and of the one that has it now. */
interface Move {
  readonly from: string
  readonly to: string
}

/**
 * Stores the names of targets. Where a name is that of another target now, because its address, command or match was
 * changed, the new target takes over what the old one had: what waits, what has ended, and the attempts. Of a delivery
 * that both had, the new one keeps its own, and what waits for the old one is removed. Returns the targets that took
 * something over.
 */
export function* nameTargets(given: readonly NamedTargetId[]): Tx<readonly string[]> {
  const targets = identified(given)
  const known = yield* fetchRows<{ target: string; name: string }>(
    'SELECT target, name FROM target WHERE name IS NOT NULL',
  )
  const ids = new Map(targets.map(({ id, name }) => [name, id]))
  const moves = known.flatMap(({ target: from, name }): Move[] => {
    const to = ids.get(name)
    return to === undefined || to === from ? [] : [{ from, to }]
  })
  const pending = new Set(moves)
  const isSource = (target: string): boolean => [...pending].some(({ from }) => from === target)
  const nextOf = (): Move | undefined => [...pending].find(({ to }) => !isSource(to))
  for (let next = nextOf(); next; next = nextOf()) {
    pending.delete(next)
    yield* move(next)
  }
  // The rest has exchanged its names, so that each queue goes where another one leaves.
  const aside = [...pending].map((each, i) => ({ ...each, by: `moving ${i}` }))
  for (const { from, by } of aside) yield* move({ from, to: by })
  for (const { by, to } of aside) yield* move({ from: by, to })
  for (const { from, to } of moves) for (const each of [from, to]) yield* recount(each)
  const named = new Map(targets.map(({ id, name = null }) => [id, name]))
  const lost = moves.filter(({ from }) => !named.has(from)).map(({ from }) => [from, null] as const)
  yield* execute(...[...named, ...lost].map(([target, name]) => setName(target, name)))
  return moves.map(({ to }) => to)
}

/** Condition for forwards of a target, without those of deliveries that the other target has too. */
const FREE =
  'target = ? AND NOT EXISTS (SELECT 1 FROM forward AS own WHERE own.n = forward.n AND own.target = ?)'

/** Moves forwards and attempts. Each statement waits for the one before, since they change the same rows. */
function* move({ from, to }: Move): Tx<void> {
  yield* fetchRows(
    `UPDATE attempt SET target = ? WHERE target = ? AND n IN (SELECT n FROM forward WHERE ${FREE})`,
    to,
    from,
    from,
    to,
  )
  yield* fetchRows(`UPDATE forward SET target = ? WHERE ${FREE}`, to, from, to)
  yield* fetchRows(`DELETE FROM forward WHERE target = ? AND status = 'waiting'`, from)
}

/** Counts the forwards of a target again. */
function* recount(target: string): Tx<void> {
  const rows = yield* fetchRows<{ status: ForwardStatus; count: number }>(
    'SELECT status, count(*) AS count FROM forward WHERE target = ? GROUP BY status',
    target,
  )
  const counts = new Map(rows.map(({ status, count }) => [status, count]))
  const of = (status: ForwardStatus): number => counts.get(status) ?? 0
  yield* fetchRows(
    `INSERT INTO target (target, waiting, succeeded, failed) VALUES (?, ?, ?, ?)
      ON CONFLICT (target) DO UPDATE SET waiting = excluded.waiting, succeeded = excluded.succeeded, failed = excluded.failed`,
    target,
    of('waiting'),
    of('succeeded'),
    of('failed'),
  )
}

function setName(target: string, name: string | null): Statement {
  return {
    sql: `INSERT INTO target (target, waiting, succeeded, failed, name) VALUES (?, 0, 0, 0, ?)
      ON CONFLICT (target) DO UPDATE SET name = excluded.name`,
    values: [target, name],
  }
}
