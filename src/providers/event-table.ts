/**
 * The members of its payload that distinguish an event from the others. Event headers are not signed, the payload is. A mark is
 * one of
 *
 * - `comment`, `alert.tool`: the payload has this member, even with the value null
 * - `!comment`: it has no such member
 * - `action=started|stopped`: the member is one of these texts
 * - `before==after`: both members are the same text
 *
 * Only members that the code host writes itself are marks, so that no author of an issue or a commit can add or hide one.
 */
export interface EventTable {
  readonly marks: Readonly<Record<string, readonly string[]>>
  /** Events without a member of their own: they fit only a payload that no event of `marks` fits. */
  readonly bare: Readonly<Record<string, readonly string[]>>
  /**
   * Events whose payload has neither a time nor an id of its own, so that the code host can send equal bytes for two things
   * that happened. The marks distinguish such payloads from others of the event.
   */
  readonly repeatable: Readonly<Record<string, readonly string[]>>
}

/** The events that a payload may be of. Empty for a payload of a kind that the table does not know. */
export function eventsOf(payload: unknown, { marks, bare }: EventTable): readonly string[] {
  const own = fitting(payload, marks)
  return own.length > 0 ? own : fitting(payload, bare)
}

/** Whether the code host can send this payload again for something new. `event` is one that the payload is of. */
export function isRepeatable(event: string, payload: unknown, { repeatable }: EventTable): boolean {
  return repeatable[event]?.every((mark) => isMarked(payload, mark)) ?? false
}

function fitting(payload: unknown, events: EventTable['marks']): readonly string[] {
  return Object.keys(events).filter((event) => events[event]?.every((mark) => isMarked(payload, mark)))
}

function isMarked(payload: unknown, mark: string): boolean {
  if (mark.startsWith('!')) return memberOf(payload, mark.slice(1)) === undefined
  const [path = '', values, same] = mark.split('=')
  const member = memberOf(payload, path)
  if (same !== undefined) return typeof member === 'string' && member === memberOf(payload, same)
  if (values === undefined) return member !== undefined
  return typeof member === 'string' && values.split('|').includes(member)
}

/** Undefined if there is none; JSON has no other undefined. */
function memberOf(payload: unknown, path: string): unknown {
  return path.split('.').reduce(ownMember, payload)
}

/** An object's own member; a payload may be any JSON value. */
export function ownMember(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, key)?.value
}
