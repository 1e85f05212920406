import type { CommandSpec } from '../../command.js'
import { WORD_KINDS } from './word-kinds.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const

export const completion: CommandSpec = {
  name: 'completion',
  group: 'Setup:',
  summary: 'print a completion script for your shell',
  description: `Prints a script that completes relay's commands, flags and their values in your shell. Put the line for your
shell into its start-up file.`,
  examples: [
    'source <(relay completion bash)  in ~/.bashrc',
    'source <(relay completion zsh)   in ~/.zshrc, after compinit',
    'relay completion fish | source   in ~/.config/fish/config.fish',
  ],
  arguments: [{ name: '<shell>', help: SHELLS.join(', '), choices: SHELLS }],
  options: [
    {
      flags: '--words <kind>',
      help: 'print the words that the script offers: entries, events, profiles, triggers',
      choices: WORD_KINDS,
    },
  ],
  load: async () => (await import('./completion.js')).runCompletion,
}
