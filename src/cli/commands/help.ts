import { anywhere } from '../../base/command-line.js'
import type { Command } from 'commander'
import packageJson from '../../../package.json' with { type: 'json' }
import { RelayError } from '../../base/errors.js'
import { suggest } from '../../base/text.js'
import type { Flags, Shell } from '../command.js'
import { meantCommand, overview, settingsHelp } from '../help.js'

export async function runHelp(
  { out, stdout }: Shell,
  _: Flags,
  topic: readonly string[],
  __: unknown,
  command: Command,
): Promise<void> {
  const program = command.parent ?? command
  if (topic.length === 0) return out.exactly(overview(stdout))
  if (topic.join(' ') === 'settings') return out.exactly(settingsHelp(stdout))
  let found = program
  for (const word of topic) found = found.commands.find((each) => each.name() === word) ?? unknown(word)
  found.outputHelp()
}

function unknown(word: string): never {
  const near = meantCommand(word) ?? (suggest(word, ['settings']) && anywhere('help settings'))
  const hint = near === undefined ? `${anywhere('help')} names the commands` : `Did you mean ${near}?`
  throw new RelayError('usage', `There is no command ${word}. ${hint}`)
}

export async function runVersion({ out, json }: Shell): Promise<void> {
  const { version } = packageJson
  if (json) out.object({ version, node: process.version })
  else out.result(version)
}
