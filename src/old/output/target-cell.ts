import { isCommand } from '../../dispatch/routes.js'
import type { Attempt, Forward } from '../../journal/types.js'
import { describeResult, shortTime } from './attempt-line.js'
import { dim, green, type Line, lineWidth, red, yellow } from './line.js'

/** What happened to a delivery at one target, for a line. */
export interface TargetCell {
  /** The target's short name. */
  readonly name: string
  readonly state: 'succeeded' | 'failed' | 'retry' | 'waiting' | 'elsewhere'
  /** `202`, `exit 1`, `unreachable`; empty where the sign says it all. */
  readonly result: string
  /** `38ms`, `again in 2s`, `after 5 attempts`; empty for none. */
  readonly detail: string
}

/** The sign of each state: colour alone says nothing to some readers. */
const SIGNS = {
  succeeded: green('✓'),
  failed: red('✗'),
  retry: yellow('↻'),
  waiting: yellow('◦'),
  elsewhere: dim('◦'),
} as const
const COLORS = { succeeded: green, failed: red, retry: yellow, waiting: yellow, elsewhere: dim } as const

export function waitingCell(name: string, result = 'waiting'): TargetCell {
  return { name, state: 'waiting', result, detail: '' }
}

/** The cell of a target to which another relay forwards. */
export function elsewhereCell(name: string): TargetCell {
  return { name, state: 'elsewhere', result: 'elsewhere', detail: '' }
}

/** The cell after an attempt; `retryAt` is when the target asked for another one. */
export function attemptCell(
  name: string,
  forward: Forward,
  attempt: Attempt | undefined,
  retryAt?: number,
): TargetCell {
  const { status, reason } = forward
  if (!attempt) {
    if (status !== 'waiting') return { name, state: status, result: reason ?? '', detail: '' }
    return waitingCell(name)
  }
  const result = describeResult(attempt)
  const time = shortTime(attempt.ms)
  if (status === 'succeeded')
    return { name, state: status, result: isCommand(attempt.target) ? '' : result, detail: time }
  if (status === 'failed') return { name, state: status, result, detail: failure(attempt, reason, time) }
  if (retryAt !== undefined) {
    const seconds = Math.max(1, Math.round((retryAt - attempt.at - attempt.ms) / 1000))
    return { name, state: 'retry', result, detail: `again in ${seconds}s` }
  }
  if (attempt.outcome === 'retry') return { name, state: 'retry', result, detail: 'waiting' }
  return waitingCell(name, attempt.outcome === 'unreachable' ? 'down' : result)
}

/** The time, and what the status does not say about a failure. */
function failure({ status, error }: Attempt, reason = error ?? '', time: string): string {
  const known = [`answered ${status}`, `exit code ${status}`].find((start) => reason.startsWith(start))
  const more = known === undefined ? reason : reason.slice(known.length).replace(/^, /, '')
  return more === '' ? time : `${time}, ${more}`
}

/**
 * The cells in at most `width` columns, each as short as that needs: `app ✓ 202 38ms`, `app ✓ 202`, `app ✓` (answers that are
 * no success stay longest); then those alike together, and at last only the failed ones by name.
 */
export function cellsLine(cells: readonly TargetCell[], width: number): Line {
  const near = cells.map((cell) => ({ ...cell, name: nearestName(cell.name) }))
  const rows = [cells.map(full), cells.map(brief), near.map(brief), near.map(notable), near.map(minimal)]
  const forms = rows.map(joined)
  const lines = [...forms, grouped(cells, ['failed', 'retry', 'waiting']), grouped(cells, ['failed'])]
  return lines.find((line) => lineWidth(line) <= width) ?? grouped(cells, ['failed'])
}

/** The columns that the cells take in the shortest form that names each and says what went wrong. */
export function leastWidth(cells: readonly TargetCell[]): number {
  return lineWidth(joined(cells.map((cell) => notable({ ...cell, name: nearestName(cell.name) }))))
}

function joined(cells: readonly Line[]): Line {
  return cells.map((cell, i) => (i === 0 ? cell : ['  ', cell]))
}

function full(cell: TargetCell): Line {
  return cell.detail === '' ? brief(cell) : [brief(cell), ' ', dim(cell.detail)]
}

function brief(cell: TargetCell): Line {
  return cell.result === '' ? minimal(cell) : [minimal(cell), ' ', COLORS[cell.state](cell.result)]
}

function notable(cell: TargetCell): Line {
  return cell.state === 'failed' || cell.state === 'retry' ? brief(cell) : minimal(cell)
}

function minimal({ name, state }: TargetCell): Line {
  return [name, ' ', SIGNS[state]]
}

/** `:3000` for an address on this machine. */
function nearestName(name: string): string {
  return name.replace(/^(?:localhost|127\.0\.0\.1|\[::1\])(?=:\d)/, '')
}

/** The cells of the same state together, the most important ones first; those of `named` states by name, of others how many. */
function grouped(cells: readonly TargetCell[], named: readonly TargetCell['state'][]): Line {
  const groups = (['failed', 'retry', 'waiting', 'succeeded', 'elsewhere'] as const).flatMap(
    (state): Line[] => {
      const alike = cells.filter((cell) => cell.state === state)
      if (alike.length === 0) return []
      if (!named.includes(state)) return [[`${alike.length} `, SIGNS[state]]]
      return alike.map(({ name }): Line => [SIGNS[state], ` ${nearestName(name)}`])
    },
  )
  return joined(groups)
}
