import type { CommandSpec } from '../../command.js'
import { SEND } from './send-options.js'

export const replay: CommandSpec = {
  ...SEND,
  name: 'replay',
  group: 'Journal:',
  summary: 'send deliveries again',
  description: `Sends fixtures or deliveries of the journal to the running relay serve or to any URL. The recorded bytes and
signature are sent unchanged if the signature matches the secret; otherwise the request is signed again. The first 8 MiB of
files are checked before anything is sent, each later file when it is sent.`,
  examples: [
    'relay replay last',
    'relay replay test/fixtures --to http://localhost:3000/hook --junit out.xml',
    'relay replay --event push --since 1h --stop',
    'relay replay --failed --forwarded',
    'relay replay opened.json --set pull_request.number=7',
    'relay replay opened.json --tamper signature --expect 401',
    'relay replay push.json --times 10000 --concurrency 32',
    `echo '{"zen":"ok"}' | relay replay - --event ping`,
  ],
  arguments: [{ name: '[file...]', help: 'fixtures, folders, -, entry numbers, or last' }],
  options: [
    {
      flags: '--event <match>',
      help: 'only entries of this event; for files without one, their event',
      repeatable: true,
    },
    { flags: '--repo <owner/name>', help: 'only entries of this repository' },
    { flags: '--since <when>', help: 'only entries received since: 1h (ago), 2026-01-31T12:00' },
    { flags: '--failed', help: 'only to targets at which an entry failed (implies --keep-id)' },
    { flags: '--last <n>', help: 'the newest N' },
    { flags: '--forwarded', help: 'wait until all were forwarded; exit 3 if that failed at a target' },
    ...SEND.options,
  ],
  environment: ['provider', ...SEND.environment],
  exitCodes: [
    [3, 'a status was not the expected one, or forwarding failed at a target'],
    6,
    [7, 'forwarding took over 5 minutes'],
    130,
  ],
  load: async () => (await import('./replay.js')).runReplay,
}
