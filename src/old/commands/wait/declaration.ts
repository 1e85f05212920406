import type { CommandSpec } from '../../command.js'
import { SINCE } from '../../journal/filter.js'

export const wait: CommandSpec = {
  name: 'wait',
  group: 'Journal:',
  summary: 'wait for a delivery',
  description: `Waits until a delivery matches, and prints it. A delivery of the last 10 seconds counts too, so that none is
missed between an action and the wait. If several match, the first is printed. With --forwarded it also waits until
forwarding to every target has succeeded or failed. Without a running relay serve it ends at once, unless --timeout is given.`,
  examples: [
    'relay wait issue_comment.created --timeout 1h',
    'git push && relay wait push --where "after==$(git rev-parse HEAD)"',
    "relay wait issue_comment --where 'comment.body ~ ^/ship'",
    'relay trigger push && relay wait push --forwarded --timeout 30s',
    'relay wait ping --since now --json | jq -r .payload.zen',
  ],
  details: () => `Where:
  a.b[0]==value  equals this text, number, true, false or null; quote it to mean text
  a.b!=value     does not equal it; a missing field is null
  a.b~pattern    matches the regular expression, within 250 ms`,
  arguments: [{ name: '<match>', help: 'event or event.action, * matches any' }],
  options: [
    {
      flags: '--where <expression>',
      help: 'payload must match this expression; all must match',
      repeatable: true,
    },
    { flags: '--repo <owner/name>', help: 'only deliveries of this repository' },
    { flags: '--text <text>', help: 'only deliveries with this text in the payload, in any case' },
    { flags: '--since <when>', help: `deliveries received since: ${SINCE}`, default: '10s' },
    { flags: '--forwarded', help: 'wait until it was forwarded; exit 3 if that failed at a target' },
    {
      flags: '--timeout <duration>',
      help: 'how long to wait, even if no relay is running',
      defaultText: '5m while relay serve runs',
    },
  ],
  environment: ['home', 'store'],
  exitCodes: [[3, 'it failed at a target'], [7, 'nothing matched in time, or forwarding took longer'], 130],
  load: async () => (await import('./wait.js')).runWait,
}
