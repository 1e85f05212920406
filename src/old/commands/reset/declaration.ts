import type { CommandSpec } from '../../command.js'

export const reset: CommandSpec = {
  name: 'reset',
  group: 'Setup:',
  summary: 'remove a profile with all its data',
  description: `Removes a profile: its journal, its tokens and its webhook secret. It first prints what will be removed and asks for
confirmation, then revokes the tokens at the code host; if that fails, it removes nothing else. Stop relay serve first.`,
  examples: ['relay reset', 'relay reset --profile sandbox --yes'],
  options: [
    { flags: '--yes', help: 'do not ask for confirmation' },
    { flags: '--local', help: 'do not revoke tokens at the code host' },
  ],
  environment: ['clientId', 'clientSecret', 'home', 'store'],
  exitCodes: [6, [8, 'the code host did not revoke a token; the profile stays'], 130],
  load: async () => (await import('./reset.js')).runReset,
}
