import type { CommandSpec } from '../../command.js'

export const profiles: CommandSpec = {
  name: 'profiles',
  group: 'Setup:',
  summary: 'list the profiles on this machine',
  description: `Lists the profiles in the data folder: what each is for, where its tokens are, its size, and whether its relay serve
runs. Changes nothing.`,
  examples: ['relay profiles', "relay profiles --json | jq -r 'select(.running) | .name'"],
  environment: ['home'],
  load: async () => (await import('./profiles.js')).runProfiles,
}
