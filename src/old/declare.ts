import { Argument, type Command, Option } from 'commander'
import type { ArgumentSpec, CommandSpec } from './command.js'
import type { Context } from './context.js'
import { conclusion, describeOption, introduction, type OptionEntry, optionsOf } from './help.js'

/** Adds a command to a commander program. What the command runs is imported when it runs. */
export function declare(parent: Command, spec: CommandSpec, context: Context): void {
  const command = parent.command(spec.name).helpCommand(false).summary(spec.summary)
  command.description(introduction(spec, context)).addHelpText('after', () => conclusion(spec))
  if (spec.group) command.helpGroup(spec.group)
  for (const argument of spec.arguments ?? []) command.addArgument(toArgument(argument))
  for (const option of optionsOf(spec)) command.addOption(toOption(option))
  for (const subcommand of spec.subcommands ?? []) declare(command, subcommand, context)
  command.showHelpAfterError(usageOf(command))
  const { load } = spec
  if (!load) return
  command.action(async (...args) => {
    const run = await load()
    await run(context, command.optsWithGlobals(), ...args)
  })
}

/** What follows a usage error: the command's usage, and where to read on. */
function usageOf(command: Command): string {
  const usage = command.createHelp().commandUsage(command)
  return `Usage: ${usage}\n(${usage.replace(/ (?:\[|<).*/, '')} --help says more)`
}

function toArgument({ name, help, choices }: ArgumentSpec): Argument {
  const argument = new Argument(name, help)
  return choices ? argument.choices(choices) : argument
}

export function toOption(entry: OptionEntry): Option {
  const option = new Option(entry.flags, describeOption(entry)).preset(entry.bare)
  if (entry.default !== undefined) option.default(entry.default)
  if (entry.choices) option.choices(entry.choices)
  if (entry.repeatable) option.argParser(append)
  return option
}

function append(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
