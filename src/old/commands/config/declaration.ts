import type { CommandSpec } from '../../command.js'
import { tilde } from '../../output/display-path.js'
import { table } from '../../output/table.js'
import { keysOf, userFile } from '../../settings/file.js'
import { OPTION_NAMES } from '../../settings/options.js'

export const config: CommandSpec = {
  name: 'config',
  group: 'Setup:',
  summary: 'show the settings and where each comes from',
  description: `Shows every setting, its value, and where it comes from. A flag wins over the environment, which wins over .env
in the working folder, the project's relay.json, your own config.json, what relay setup stored, and the default. Where a running relay serve has another
value, commands use that one. Secrets are masked.`,
  examples: [
    'relay config',
    'relay config --json | jq .settings.port',
    'relay config --reveal webhookSecret  the secret to enter at the code host',
  ],
  details: (context) => {
    const files = [
      ['.env', 'in the working folder: variables of settings that relay.json can set, and secrets'],
      ['relay.json', `in the working folder or above it in its checkout: ${keysOf('project').join(', ')}`],
      [tilde(userFile(context)), 'every setting, secrets as <name>File; and "profiles": {"<profile>": {…}}'],
    ]
    return ['Files:', ...table(files).map((line) => `  ${line}`)].join('\n')
  },
  options: [{ flags: '--reveal <name>', help: 'print only the value of this setting, even a secret' }],
  environment: OPTION_NAMES.filter((name) => name !== 'profile'),
  load: async () => (await import('./config.js')).runConfig,
}
