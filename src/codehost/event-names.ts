import { sentEvents } from './events.js'
import { EVENTS as GITEA } from './gitea/events.js'
import { EVENTS as GITHUB } from './github/events.js'

/** The names of the events that code hosts send. Apart from the schemes, which load cryptography: every start of relay needs these. */
export const EVENT_NAMES: readonly string[] = [
  ...new Set([GITHUB, GITEA].flatMap((events) => [...sentEvents(events).keys()])),
]
