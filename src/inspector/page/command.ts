import { type Command, type CommandPlace, commandsOf } from '../../base/command-line.js'

/** Completes a command for the profile of the instance, which is in the page that every address has: also before anything can be read. */
export const command: Command = commandsOf(placeOf(document.querySelector<HTMLElement>('#app')))

function placeOf(root: HTMLElement | null): CommandPlace {
  const place: CommandPlace = JSON.parse(root?.dataset['place'] ?? 'null')
  return place
}
