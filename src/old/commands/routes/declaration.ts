import type { CommandSpec } from '../../command.js'
import { ENTRY_ARGUMENT } from '../../journal/entry-number.js'

const COMMON = { environment: ['home', 'store'], exitCodes: [6] } as const

export const routes: CommandSpec = {
  ...COMMON,
  name: 'routes',
  group: 'Journal:',
  summary: 'show where deliveries are forwarded to',
  description: `Lists the routes of the running relay serve: where deliveries go, whether each target answers, and how many
deliveries of the journal were forwarded to it, failed there, or wait. Without a running relay serve, lists those of the
settings.`,
  examples: ['relay routes', 'relay routes test last'],
  load: async () => (await import('./routes.js')).runRoutes,
  subcommands: [
    {
      ...COMMON,
      name: 'test',
      summary: 'show which routes match a delivery, and why',
      description: `Shows for every route of the running relay serve whether a delivery of the journal matches it, and why.
Routes given here replace those, so that you can try a change before you make it.`,
      examples: [
        'relay routes test last',
        "relay routes test 7 --forward 'pull_request.*=http://localhost:3000/pr'",
      ],
      arguments: [ENTRY_ARGUMENT],
      settings: ['forward', 'exec', 'ignore'],
      load: async () => (await import('./test.js')).runTest,
    },
  ],
}
