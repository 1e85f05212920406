import { eventTable, sentEvents } from './events.js'
import { EVENTS as GITEA } from './gitea/events.js'
import { EVENTS as GITHUB } from './github/events.js'

let names: readonly string[] | undefined

/** The names of the events that code hosts send. Apart from the schemes, which load cryptography, and read when they are first needed. */
export function eventNames(): readonly string[] {
  names ??= [...new Set([GITHUB, GITEA].flatMap((events) => [...sentEvents(eventTable(events)).keys()]))]
  return names
}
