import type { Command } from 'commander'
import { anywhere } from '../../base/command-line.js'
import { RelayError } from '../../base/errors.js'
import { suggest } from '../../base/text.js'
import { define, type Flags, type Shell } from '../command.js'
import { fit, overview, settingsHelp } from '../help.js'
import { meantCommand } from '../meant.js'

export const helpCommand = define({
  description: `Prints the help of a command. "settings" lists every setting with its flag and its variable. Without a topic, names the
commands.`,
  examples: 'relay help\nrelay help serve\nrelay help routes test\nrelay help settings',
  args: [['[topic...]', 'command, or settings']],
  input: (flags, topic: readonly string[], _: unknown, command: Command): HelpInput => {
    return { ...flags, topic, program: command.parent ?? command }
  },
  run: runHelp,
  print: (text, out) => out.exactly(text),
})

interface HelpInput extends Flags {
  readonly topic: readonly string[]
  readonly program: Command
}

async function runHelp({ stdout }: Shell, { topic, program }: HelpInput): Promise<string> {
  if (topic.length === 0) return overview(stdout)
  if (topic.join(' ') === 'settings') return settingsHelp(stdout)
  let found = program
  for (const word of topic) found = found.commands.find((each) => each.name() === word) ?? unknown(word)
  return fit(found.helpInformation(), stdout)
}

function unknown(word: string): never {
  const near = meantCommand(word) ?? (suggest(word, ['settings']) && anywhere('help settings'))
  const hint = near === undefined ? `${anywhere('help')} names the commands` : `Did you mean ${near}?`
  throw new RelayError('usage', `There is no command ${word}. ${hint}`)
}
