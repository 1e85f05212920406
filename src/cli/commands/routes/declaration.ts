import type { CommandSpec } from '../../command.js'
import { ENTRY_ARGUMENT } from '../../journal/entry-number.js'

const COMMON = { environment: ['home', 'store'], exitCodes: [6] } as const

export const routes: CommandSpec = {
  ...COMMON,
  name: 'routes',
  group: 'Journal:',
  summary: 'show where deliveries are forwarded to',
  description: 'Shows where deliveries are forwarded to.',
  examples: ['relay routes test last'],
  subcommands: [
    {
      ...COMMON,
      name: 'test',
      summary: 'show which routes match a delivery, and why',
      description: `Shows for every route whether a delivery of the journal matches it, and why. Routes given here replace
those of the settings, so that you can try a change before you make it.`,
      examples: [
        'relay routes test last',
        "relay routes test 7 --forward 'pull_request.*=http://localhost:3000/pr'",
      ],
      arguments: [ENTRY_ARGUMENT],
      settings: ['forward', 'exec', 'ignore'],
      load: async () => (await import('./routes.js')).runTest,
    },
  ],
}
