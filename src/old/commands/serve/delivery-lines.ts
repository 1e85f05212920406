import type { AttemptEvent } from '../../../dispatch/dispatcher.js'
import { isCommand, type Routing } from '../../../dispatch/routes.js'
import type { Delivery, Receipt } from '../../../journal/types.js'
import { createColumns, type Row } from '../../output/delivery-columns.js'
import type { DeliveryName } from '../../output/delivery-line.js'
import type { Block, Feed } from '../../output/feed.js'
import { cutLine, type Line } from '../../output/line.js'
import { timeOfDay } from '../../output/time.js'
import { attemptCell, elsewhereCell, type TargetCell, waitingCell } from '../../output/target-cell.js'
import { ignoredText } from '../../../journal/types.js'
import { outputLines } from './command-output.js'
import type { TargetLines } from './target-lines.js'

type Routes = Pick<Routing, 'routes'>

/** The lines about deliveries: one each, with all of its targets. */
export interface DeliveryLines {
  received(delivery: Delivery, receipt: Receipt): void
  /** `isCounted`: the attempt is part of a target's return, which has a line of its own. */
  attempted(event: AttemptEvent, isCounted: boolean): void
  setRoutes(routes: Routes): void
}

export interface DeliveryLinesOptions {
  readonly feed: Pick<Feed, 'add'>
  readonly routes: Routes
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
  /** What the target is if not up. */
  readonly stateOf: TargetLines['stateOf']
}

/** A line that is not final yet. */
interface Pending {
  readonly cells: Map<string, TargetCell>
  readonly outputs: Line[]
  readonly block: Block
}

/** Lines that can still change. Later attempts at a delivery whose line is forgotten have a line of their own. */
const MAX_PENDING = 10_000

export function createDeliveryLines({ feed, routes, nameOf, stateOf }: DeliveryLinesOptions): DeliveryLines {
  const columns = createColumns()
  const pending = new Map<number, Pending>()
  let current = routes
  const setRoutes = (next: Routes): void => {
    current = next
    columns.fit(typicalRow(next.routes.map(({ id }) => waitingCell(nameOf(id)))))
  }
  setRoutes(routes)
  const drawing = (row: () => Row, outputs: readonly Line[]) => (width: number) => [
    columns.line(row(), width),
    ...outputs.map((line) => cutLine(line, width)),
  ]

  return {
    setRoutes,
    received(delivery, receipt) {
      const { n, targets } = receipt
      pending.get(n)?.block.redraw({ isFinal: true })
      pending.delete(n)
      const cells = new Map(targets.map((id) => [id, firstCell(nameOf(id), stateOf(id))]))
      const start = startOf(n, delivery, delivery.receivedAt)
      const note = noteOf(delivery, receipt, current)
      const outputs: Line[] = []
      const draw = drawing(() => ({ ...start, note, cells: [...cells.values()] }), outputs)
      const isFinal = [...cells.values()].every(isFinished)
      const block = feed.add(draw, isFinal)
      if (isFinal) return
      pending.set(n, { cells, outputs, block })
      const [oldest] = pending.keys()
      if (pending.size > MAX_PENDING && oldest !== undefined) pending.delete(oldest)
    },
    attempted({ n, entry, route, attempt, forward, retryAt }, isCounted) {
      const cell = attemptCell(nameOf(route.id), forward, attempt, retryAt)
      const output = isCommand(route.id) ? outputLines(cell.name, attempt.answer) : []
      const line = pending.get(n)
      if (line) {
        line.cells.set(route.id, cell)
        line.outputs.push(...output)
        const isFinal = [...line.cells.values()].every(isFinished)
        const isDrawn = line.block.redraw({ isFinal })
        if (isFinal || !isDrawn) pending.delete(n)
        if (isDrawn) return
      }
      // The line that is there says that it waits.
      if (forward.status === 'waiting') return
      if (isCounted && forward.status === 'succeeded' && output.length === 0) return
      const row = { ...startOf(n, entry, attempt.at), note: '', cells: [cell] }
      feed.add(
        drawing(() => row, output),
        true,
      )
    },
  }
}

/** The cell of a target before an attempt. */
function firstCell(name: string, state: ReturnType<TargetLines['stateOf']>): TargetCell {
  return state === 'elsewhere'
    ? elsewhereCell(name)
    : waitingCell(name, state === 'down' ? 'down' : 'waiting')
}

/** Whether this relay adds nothing to it. */
function isFinished({ state }: TargetCell): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'elsewhere'
}

function startOf(n: number, delivery: DeliveryName, at: number): Pick<Row, 'time' | 'n' | 'delivery'> {
  const { event, action, repo, number, ref } = delivery
  return {
    time: timeOfDay(at),
    n,
    delivery: { event, action, repo, number, ...(ref !== undefined && { ref }) },
  }
}

/** A row as wide as most, so that the columns rarely move. */
function typicalRow(cells: readonly TargetCell[]): Row {
  const delivery = { event: 'pull_request', action: 'opened', repo: 'octo/demo', number: 100 }
  return { ...startOf(99, delivery, 0), note: '', cells }
}

/** What is special about a delivery, in a few words; empty for most. */
export function noteOf(
  { deliveryId }: Delivery,
  { duplicate, targets, ignoredBy }: Receipt,
  { routes }: Routes,
): string {
  if (duplicate) return `duplicate, delivery ${deliveryId}`
  if (ignoredBy !== undefined) return ignoredText(ignoredBy)
  return targets.length > 0 || routes.length === 0 ? '' : 'no route'
}
