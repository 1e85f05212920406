import type { Log } from '../../base/log.js'
import { toRelayError } from '../../base/errors.js'
import { Outside, Own } from '../output/outside.js'
import type { CommandMessages } from '../output/output.js'
import { type Line, textOf } from '../output/text.js'

/** A message of relay. Text that may quote the outside is marked. */
export type Note = string | Outside

/** Messages of a command, for an agent. Each may quote the outside, unless it is marked as relay's own. */
export class Notes implements CommandMessages {
  readonly isTerminal = false
  readonly quiet = false
  readonly list: Note[] = []
  /** Further members of each result. */
  members: object = {}
  readonly log: Log = {
    debug: () => {},
    info: (text) => this.say(text),
    warn: (text) => this.warn(text),
    error: (text) => this.#add('error: ', text),
  }

  say(line: Line): void {
    this.#add('', line)
  }

  warn(line: Line): void {
    this.#add('warning: ', line)
  }

  count(): void {}

  remark(text: string, members: object): void {
    this.warn(text)
    this.members = { ...this.members, ...members }
  }

  #add(label: string, line: Line): void {
    const text = String(textOf(line))
    if (text !== '') this.list.push(line instanceof Own ? label + text : new Outside(label + text))
  }
}

export function noteFrom(thrown: unknown): Note {
  const error = toRelayError(thrown)
  return error.isOwnWords ? error.message : new Outside(error.message)
}
