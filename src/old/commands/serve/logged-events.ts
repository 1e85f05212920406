import { attemptObject, describeAttempt } from '../../output/attempt-line.js'
import { deliveryObject, type DeliveryName, eventName, placeName } from '../../output/delivery-line.js'
import type { JsonLog } from '../../output/json-log.js'
import { lineText } from '../../output/line.js'
import { noteOf } from './delivery-lines.js'
import type { EventLines, EventLinesOptions } from './event-lines.js'
import { hookObject, hookText, isProblem } from './hook-lines.js'
import { targetObject } from './target-lines.js'
import { tunnelObject, tunnelText } from './tunnel-line.js'

const STATES = {
  up: 'is up',
  down: 'is down',
  gone: 'is no longer configured',
  elsewhere: 'is forwarded to by another relay',
} as const

/** The states that call for nothing. */
const FINE: ReadonlySet<string> = new Set(['up', 'elsewhere'])

/** The messages for programs: one for each event, when it happens, with the fields that `--json` prints of it. */
export function createLoggedEvents(log: JsonLog, { routes, nameOf }: EventLinesOptions): EventLines {
  let current = routes
  return {
    delivery(delivery, receipt) {
      const note = noteOf(delivery, receipt, current)
      const message = `${nameText(receipt.n, delivery)}${note === '' ? '' : `: ${note}`}`
      log.event('info', message, deliveryObject(delivery, receipt))
    },
    attempt(event) {
      const { n, entry, route, attempt, forward } = event
      const name = nameOf(route.id)
      const message = `${nameText(n, entry)} → ${name} ${describeAttempt(attempt)}`
      const fields = { ...attemptObject(event), name, delivery: entry.deliveryId }
      log.event(forward.status === 'failed' ? 'warn' : 'info', message, fields)
    },
    target(status) {
      const name = nameOf(status.id)
      const message = `${name} ${STATES[status.state]}`
      log.event(FINE.has(status.state) ? 'info' : 'warn', message, { ...targetObject(status), name })
    },
    tunnel(status, before) {
      const text = tunnelText(status, before, Date.now())
      if (text === undefined) return
      const level = status.state === 'waiting' ? 'warn' : 'info'
      log.event(level, lineText(text).trim(), tunnelObject(status))
    },
    hook: (event) => log.event(isProblem(event) ? 'warn' : 'info', hookText(event), hookObject(event)),
    setRoutes: (next) => void (current = next),
  }
}

/** `#12 issue_comment.created octo/demo#1`, `#13 push octo/demo main` */
function nameText(n: number, delivery: DeliveryName): string {
  return `#${n} ${eventName(delivery)} ${placeName(delivery).replace('  ', ' ')}`.trim()
}
