import type { CommandSpec } from '../../command.js'
import { DELIVERY_STATUSES } from '../../../journal/filter.js'
import { SINCE } from '../../journal/filter.js'

export const log: CommandSpec = {
  name: 'log',
  group: 'Journal:',
  summary: 'list deliveries and the state of their forwarding',
  description: `Lists the deliveries in the journal, oldest first: number, local time, event, repository, state of forwarding
to each target, and number of duplicates. Works with or without a running relay serve.`,
  examples: [
    'relay log',
    "relay log --event pull_request --event 'issues.*' --since 1h",
    'relay log --failed -n 100 --json | jq .n',
    'relay log -f --repo octo/demo',
    'relay log --status waiting --text v1.2.0',
    'relay log --refused',
  ],
  options: [
    { flags: '--event <match>', help: 'event or event.action, * matches any', repeatable: true },
    { flags: '--repo <owner/name>', help: 'only deliveries of this repository' },
    { flags: '--since <when>', help: `only deliveries received since: ${SINCE}` },
    { flags: '--until <when>', help: 'only deliveries received before' },
    {
      flags: '--status <status>',
      help: `only deliveries with this state: ${DELIVERY_STATUSES.join(', ')}`,
      choices: DELIVERY_STATUSES,
    },
    { flags: '--failed', help: 'only deliveries that failed at a target' },
    { flags: '--text <text>', help: 'only deliveries with this text in the payload, in any case' },
    { flags: '-n, --last <n>', help: 'the newest N', default: '20' },
    { flags: '--refused', help: 'requests that were refused, with the reason; asks the running instance' },
    { flags: '-f, --follow', help: 'print new deliveries and changes until Ctrl-C' },
  ],
  environment: ['home', 'store'],
  exitCodes: [[0, 'success, also after Ctrl-C with --follow'], 6, 130],
  load: async () => (await import('./log.js')).runLog,
}
