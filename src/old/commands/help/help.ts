import type { Command } from 'commander'
import { RelayError } from '../../../base/errors.js'
import { suggest } from '../../../base/suggest.js'
import type { Context } from '../../context.js'
import { meantCommand } from '../../meanings.js'
import { createOutput } from '../../output/output.js'
import { table } from '../../output/table.js'
import { fit } from '../../output/wrap.js'
import { defaultText, OPTION_NAMES, specOf } from '../../settings/options.js'
import type { CommonFlags } from '../../settings/prepare.js'

/** Runs `relay help`. @throws RelayError `usage` for an unknown topic. */
export async function runHelp(
  context: Context,
  flags: CommonFlags,
  topic: readonly string[],
  _: unknown,
  command: Command,
): Promise<void> {
  const program = command.parent ?? command
  const output = createOutput(context, flags)
  if (topic.length === 0)
    return output.exactly(fit(program.helpInformation({ error: true }), context.stdout.columns ?? 80))
  if (topic.join(' ') === 'settings') return output.exactly(settings(context))
  let found = program
  for (const word of topic)
    found = found.commands.find((each) => each.name() === word) ?? unknown(word, program)
  found.outputHelp()
}

/** Every setting, as a table as wide as its terminal. */
function settings({ stdout: { columns = 80 } }: Context): string {
  const rows = OPTION_NAMES.map((name) => {
    const { env, flag = '', help } = specOf(name)
    const text = defaultText(name)
    const names = [env, flag.split(' ')[0]].filter(Boolean).join(', ')
    return [`  ${names}`, `${help}${text === undefined ? '' : ` (default: ${text})`}`]
  })
  const lines = table(rows).map((line) => fit(line, columns))
  const end =
    'relay config shows the settings in force, and where each comes from. docs/settings.md says where they can be set.'
  return ['Settings, by variable and flag:', ...lines, '', fit(end, columns), ''].join('\n')
}

function unknown(word: string, program: Command): never {
  const names = program.commands.map((each) => each.name())
  const meant = meantCommand(word, names)
  const near = meant ?? (suggest(word, ['settings']) && 'relay help settings')
  const hint = near === undefined ? 'relay help names the commands' : `Did you mean ${near}?`
  throw new RelayError('usage', `There is no command ${word}. ${hint}`)
}
