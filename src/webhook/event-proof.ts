import { RelayError } from '../base/errors.js'
import type { Restored } from '../journal/types.js'
import { type EventTable, eventsOf, isRepeatable } from '../providers/event-table.js'

/**
 * What a payload says about the event that the headers of a message claim. `unproved` is set if the payload may also be of
 * another event, or is of a kind that the table does not know, such as one of a newer code host.
 * @throws RelayError `invalid_event` if the payload is of another event.
 */
export function proveEvent(
  event: string,
  payload: unknown,
  table: EventTable,
): Pick<Restored, 'unproved' | 'repeatable'> {
  const possible = eventsOf(payload, table)
  if (possible.length > 0 && !possible.includes(event)) {
    const cause = new Error(
      `the payload is of ${possible.join(' or ')}, not of the event that the header names`,
    )
    throw new RelayError('invalid_event', 'Invalid event', { cause })
  }
  if (possible.length !== 1) return { unproved: true }
  return isRepeatable(event, payload, table) ? { repeatable: true } : {}
}
