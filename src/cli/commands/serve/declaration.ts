import type { CommandSpec } from '../../command.js'

export const serve: CommandSpec = {
  name: 'serve',
  group: 'Service:',
  summary: 'run the service',
  description: `Runs the service until Ctrl-C. It receives signed webhook deliveries, writes each to the journal before
answering, and forwards it to URLs and commands. It signs users in at the code host, and comments, merges and reacts for
them. An --exec command that was interrupted runs again at the next start.`,
  examples: [
    'relay serve --sandbox  with an emulated code host',
    'relay serve            for GitHub',
    'relay serve --provider gitea --provider-url https://git.example.com',
    "relay serve --forward http://localhost:3000/hooks --exec 'push=./deploy.sh'",
    'relay serve --tunnel   reachable from the internet through smee.io',
  ],
  options: [{ flags: '--sandbox', help: 'start an emulated code host, in the profile sandbox' }],
  settings: [
    'provider',
    'providerUrl',
    'port',
    'host',
    'allowHost',
    'publicUrl',
    'baseUrl',
    'store',
    'maxBody',
    'sandboxPort',
    'tunnel',
    'forward',
    'exec',
    'ignore',
    'concurrency',
    'onDuplicate',
    'keep',
    'keepMax',
  ],
  environment: ['clientId', 'clientSecret', 'webhookSecret', 'webhookSecretPrevious', 'tokenTtl', 'home'],
  exitCodes: [[0, 'success, also after Ctrl-C']],
  load: async () => (await import('./serve.js')).runServe,
}
