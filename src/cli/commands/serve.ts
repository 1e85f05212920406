import { SETTING_NAMES, settingOf } from '../settings/table.js'
import { define, type Shell } from '../command.js'
import { itemObject } from './serve/objects.js'
import type { ServeFlags } from './serve/serve.js'

export const serveCommand = define({
  description: `Writes each signed webhook delivery to the journal before answering, and forwards it to URLs and commands. Signs users
in, and acts for them.`,
  examples: `relay serve --sandbox  with an emulated code host
relay serve --forward http://localhost:3000/hooks --exec 'push=./deploy.sh'
relay serve --tunnel --hook octo/demo --catch-up`,
  options: [
    ['--sandbox', 'start an emulated code host, in the profile sandbox'],
    ['--hook <owner/repo>', 'create a hook there while relay runs', { repeatable: true }],
    ['--catch-up', 'get deliveries that were sent while relay was away'],
    ['--no-inspect', 'run without the inspector'],
    ['--keep-running', 'continue when the output is closed'],
    ['--allow-unsigned', 'take the scheme none from anywhere'],
  ],
  settings: SETTING_NAMES.filter((name) => name !== 'profile' && name !== 'user' && settingOf(name).flag),
  env: ['user', 'clientId', 'clientSecret', 'webhookSecret', 'webhookSecretPrevious', 'tokenTtl', 'home'],
  exits: [[0, 'success, also after Ctrl-C']],
  isService: true,
  async *run(shell: Shell, flags: ServeFlags) {
    const { runServe } = await import('./serve/serve.js')
    yield* runServe(shell, flags)
  },
  async print(items, out) {
    const { printServe } = await import('./serve/events.js')
    await printServe(items, out)
  },
  json: itemObject,
})
