import { type Command, type CommandPlace, commandsOf } from '../../base/command-line.js'

/**
 * Completes a command line for the profile of the instance. The profile is in the page itself, so this works before
 * anything is read.
 */
export const command: Command = commandsOf(placeOf(document.querySelector<HTMLElement>('#app')))

function placeOf(root: HTMLElement | null): CommandPlace {
  const place: CommandPlace = JSON.parse(root?.dataset['place'] ?? 'null')
  return place
}
