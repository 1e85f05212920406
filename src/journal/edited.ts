import type { Delivery } from './delivery.js'

/** The header of a delivery that a user edited and sent: the number of the entry that it is a copy of. Only relay sets it. */
export const EDITED_HEADER = 'X-Relay-Edited'

export function isEditedHeader(name: string): boolean {
  return name.length === EDITED_HEADER.length && name.toLowerCase() === EDITED_HEADER.toLowerCase()
}

/** The number of the entry that a delivery is an edited copy of; undefined for one that came from outside. */
export function editedFrom({ headers }: Pick<Delivery, 'headers'>): number | undefined {
  const [, value] = headers.find(([name]) => isEditedHeader(name)) ?? []
  return value === undefined ? undefined : Number(value)
}
