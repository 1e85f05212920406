import type { CommandSpec } from '../../command.js'

export const help: CommandSpec = {
  name: 'help',
  group: 'Setup:',
  summary: 'explain a command, or list the settings',
  description: `Prints the help of a command. "settings" lists every setting with its flag and its variable. Without a topic, it
names the commands.`,
  examples: ['relay help', 'relay help serve', 'relay help routes test', 'relay help settings'],
  arguments: [{ name: '[topic...]', help: 'command, or settings' }],
  load: async () => (await import('./help.js')).runHelp,
}
