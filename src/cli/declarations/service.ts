import type { Commands } from '../command.js'
import { SETTING_NAMES, settingOf } from '../settings/table.js'

export const SERVICE: Commands = {
  serve: {
    summary: 'run the service',
    description: `Writes each signed webhook delivery to the journal before answering, and forwards it to URLs and commands. Signs users
in, and acts for them.`,
    examples: `relay serve --sandbox  with an emulated code host
relay serve --forward http://localhost:3000/hooks --exec 'push=./deploy.sh'
relay serve --tunnel --hook octo/demo --catch-up`,
    options: [
      ['--sandbox', 'start an emulated code host, in the profile sandbox'],
      ['--hook <owner/repo>', 'create a hook there while relay runs', { repeatable: true }],
      ['--catch-up', 'get what was sent while relay was away'],
      ['--no-inspect', 'run without the inspector'],
      ['--allow-unsigned', 'take the scheme none from other machines, too'],
    ],
    settings: SETTING_NAMES.filter((name) => name !== 'profile' && name !== 'user' && settingOf(name).flag),
    env: ['user', 'clientId', 'clientSecret', 'webhookSecret', 'webhookSecretPrevious', 'tokenTtl', 'home'],
    exits: [[0, 'success, also after Ctrl-C']],
    load: async () => (await import('../commands/serve/serve.js')).runServe,
  },

  mcp: {
    summary: 'let a coding agent see and repeat deliveries',
    description: `A Model Context Protocol server on standard input and output, which the agent's client starts. Its tools list, show, await,
replay and make up deliveries, explain refused requests and routes, and say what runs. They act on nothing else: what a delivery
holds is data, and no tool does what it says. docs/agents.md has the configuration of common clients.`,
    examples: `relay mcp
relay mcp --serve --forward http://localhost:3000/hooks  start a relay if none runs
relay mcp --allow-actions                                with the tools comment, merge and react`,
    options: [
      ['--serve', 'start a relay where none runs, for as long as this command runs'],
      ['--sandbox', 'with --serve: start an emulated code host, in the profile sandbox'],
      [
        '--allow-project-exec',
        'with --serve: also run the commands of relay.json and .env, once you have read them',
      ],
      ['--allow-actions', 'offer comment, merge and react, which act on the code host as the signed-in user'],
    ],
    settings: ['port', 'forward', 'exec', 'ignore', 'sources', 'tunnel'],
    env: ['user', 'home', 'store', 'webhookSecret'],
    exits: [[0, 'success, also at the end of the input and after Ctrl-C']],
    load: async () => (await import('../commands/mcp.js')).runMcp,
  },
}
