/**
 * Whether it failed, or an answer asked for another attempt. An attempt that found its target unreachable is none of these: the target is
 * down then, and the delivery waits. As FAILED_ATTEMPT of store/schema.ts.
 */
export function isFailedAttempt({ status, tries }) {
  return status === 'failed' || tries > 0
}
/** Enough for any message of the system. */
export const MAX_ERROR = 1024
/** The header of a delivery that a user edited and sent: the number of the entry that it is a copy of. Only relay sets it. */
export const EDITED_HEADER = 'X-Relay-Edited'
export function isEditedHeader(name) {
  return name.length === EDITED_HEADER.length && name.toLowerCase() === EDITED_HEADER.toLowerCase()
}
/** The number of the entry that a delivery is an edited copy of; undefined for one that came from outside. */
export function editedFrom({ headers }) {
  const [, value] = headers.find(([name]) => isEditedHeader(name)) ?? []
  return value === undefined ? undefined : Number(value)
}
/** What a delivery is about within its repository: `#12`, a branch or a tag; null where the payload names none. */
export function subjectOf({ number, ref }) {
  if (number !== null) return `#${number}`
  return ref === undefined ? null : shortRef(ref)
}
/** The name of a branch or tag; the event says which of the two it is. */
export function shortRef(ref) {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}
/** Why an entry was forwarded to no target. */
export function ignoredText(ignoredBy) {
  return `ignored by ${ignoredBy}`
}
/** Whether a forward of it has failed for good. */
export function hasFailed({ forwards }) {
  return Object.values(forwards).some(({ status }) => status === 'failed')
}
