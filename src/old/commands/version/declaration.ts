import type { CommandSpec } from '../../command.js'

export const version: CommandSpec = {
  name: 'version',
  group: 'Setup:',
  summary: 'print the version',
  description: 'Prints the version of relay, as relay --version does.',
  examples: ['relay version', 'relay version --json'],
  load: async () => (await import('./version.js')).runVersion,
}
