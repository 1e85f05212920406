import type { CommandSpec } from './command.js'
import { table } from './output/table.js'

/** The commands that most people need, in the order in which they need them. */
const FIRST = ['serve', 'trigger', 'log', 'show', 'login', 'comment']

/** What `relay` alone prints: the first commands with what they do, the names of the others, and where to read on. */
export function overview(commands: readonly CommandSpec[]): string {
  const first = FIRST.flatMap((name) => commands.find((spec) => spec.name === name) ?? [])
  const groups = new Map<string, string[]>()
  for (const { name, group = '' } of commands.filter((spec) => !first.includes(spec)))
    groups.set(group, [...(groups.get(group) ?? []), name])
  return [
    'Usage: relay <command> [options]',
    '',
    "Receives a code host's webhooks on this machine, durably,",
    'and acts on the code host from your shell.',
    '',
    'First steps, without an account or a network: relay serve --sandbox',
    '',
    'Most used:',
    ...table(first.map(({ name, summary }) => [`  ${name}`, summary])),
    '',
    ...table([...groups].map(([group, names]) => [group, names.join(', ')])),
    '',
    'relay help <command> explains a command, relay help settings lists the settings.',
    '',
  ].join('\n')
}
