import type { CaughtUp, Failed } from '../../codehost/catch-up.js'
import { eventName } from './delivery-line.js'
import { localTime } from './time.js'

/** `caught up with octo/demo: 40 missing, 38 arrived, 2 could not be had (…)`. The first reason stands for all. */
export function caughtUpText(repo: string, { missing, arrived, failed }: CaughtUp): string {
  if (missing === 0) return `caught up with ${repo}: nothing was missing`
  const [first] = failed
  const rest = first ? `, ${failed.length} could not be had (${failedText(first)})` : ''
  return `caught up with ${repo}: ${missing} missing, ${arrived} arrived${rest}`
}

/** What to do about deliveries that could not be had. */
export const ASK_AGAIN = 'relay doctor checks the hook; relay catch-up asks again'

/** `issues.opened of 2026-01-31 12:00:00: it did not arrive within 30 s` */
export function failedText({ delivery, why }: Failed): string {
  return `${eventName(delivery)} of ${localTime(delivery.deliveredAt)}: ${why}`
}

export function failedObject({ delivery, why }: Failed): Record<string, unknown> {
  return { ...missedObject(delivery), why }
}

/** A delivery of the code host's log, for a program. */
export function missedObject({ id, guid, event, action, deliveredAt }: Failed['delivery']) {
  return { id, guid, event, action, deliveredAt: new Date(deliveredAt).toISOString() }
}
