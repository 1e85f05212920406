import { ACTIONS as GITEA } from './gitea/actions.js'
import { ACTIONS as GITHUB } from './github/actions.js'

/** The events that code hosts send. */
export const EVENTS: readonly string[] = [...new Set([...GITHUB.keys(), ...GITEA.keys()])]
