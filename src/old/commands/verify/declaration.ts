import type { CommandSpec } from '../../command.js'
import { SECRET_OPTION } from '../replay/send-options.js'

export const verify: CommandSpec = {
  name: 'verify',
  group: 'Journal:',
  summary: 'explain why a signature does not match',
  description: `Checks the signatures of fixtures or of deliveries in the journal against the webhook secret. For one that does
not match it names the cause: another secret, or white space at its end; a body that was changed after signing, and how;
a form read as JSON; a signature in another header or in another format. It never prints a secret or a correct signature.`,
  examples: [
    'relay verify opened.json',
    'relay verify last',
    'relay verify refused:3',
    'relay verify test/fixtures --secret-env GITHUB_WEBHOOK_SECRET',
    'relay verify - --json < opened.json | jq -r .reason',
  ],
  arguments: [{ name: '<file...>', help: 'fixtures, folders, -, entry numbers, last, or refused:<number>' }],
  options: [SECRET_OPTION],
  environment: ['home', 'store', 'webhookSecret', 'webhookSecretPrevious'],
  exitCodes: [[0, 'all signatures match'], 5, 6, 130],
  load: async () => (await import('./verify.js')).runVerify,
}
