import type { CommandSpec } from '../../command.js'
import { ENTRY_ARGUMENT } from '../../journal/entry-number.js'

export const show: CommandSpec = {
  name: 'show',
  group: 'Journal:',
  summary: 'show one delivery and the answers of its targets',
  description: `Shows one delivery: its headers in order, its body, and every attempt to forward it with the start of the
target's answer. For refused:3, shows the third request that the running instance refused, and why.`,
  examples: [
    'relay show last',
    'relay show 7 --body > body.json  the exact bytes',
    'relay show 7 --json | jq .payload.action',
    'relay show refused:3',
  ],
  arguments: [{ ...ENTRY_ARGUMENT, help: `${ENTRY_ARGUMENT.help}, or refused:<number>` }],
  options: [{ flags: '--body', help: 'print only the exact bytes of the body; escaped on a terminal' }],
  environment: ['home', 'store'],
  exitCodes: [6],
  load: async () => (await import('./show.js')).runShow,
}
