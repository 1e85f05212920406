import { Argument, type Command } from 'commander'
import type { Context } from '../context.js'
import { createOutputFor, environmentHelp, exitCodesHelp, type RawOptions } from '../globals.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** Declares `relay completion`. Its scripts are made from the whole command tree, when it runs. */
export function declareCompletion(command: Command, context: Context, run = runCompletion): void {
  command
    .description(
      `Prints a script for your shell that completes relay's commands, flags and their values. Put the line for your shell
into its start-up file.

Examples:
  source <(relay completion bash)       in ~/.bashrc
  source <(relay completion zsh)        in ~/.zshrc, after compinit
  relay completion fish | source        in ~/.config/fish/config.fish`,
    )
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText('after', () => `${environmentHelp([])}\n${exitCodesHelp([0, 2])}`)
    .action((shell: Shell, _: unknown, command: Command) =>
      run(context, command.optsWithGlobals(), shell, command.parent ?? command),
    )
}

async function runCompletion(
  context: Context,
  flags: RawOptions,
  shell: Shell,
  program: Command,
): Promise<void> {
  const write = await SCRIPTS[shell]()
  const script = write(program).trimEnd()
  const output = createOutputFor(context, flags)
  if (flags.json) output.object({ shell, script })
  else output.result(script)
}

const SCRIPTS = {
  bash: async () => (await import('../completion/bash.js')).bashCompletion,
  zsh: async () => (await import('../completion/zsh.js')).zshCompletion,
  fish: async () => (await import('../completion/fish.js')).fishCompletion,
} as const satisfies Record<Shell, () => Promise<(program: Command) => string>>
