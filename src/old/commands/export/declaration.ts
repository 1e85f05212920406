import type { CommandSpec } from '../../command.js'
import { ENTRY_ARGUMENT } from '../../journal/entry-number.js'

export const exportCommand: CommandSpec = {
  name: 'export',
  group: 'Journal:',
  summary: 'write a delivery as a fixture',
  description: `Prints one delivery as a fixture: a JSON file with its headers and exact body, for use in tests. Headers
with credentials are left out. The payload is complete: check it before you publish the file.`,
  examples: ['relay export last > push.json', 'relay export 7 --pretty --out test/fixtures/opened.json'],
  arguments: [ENTRY_ARGUMENT],
  options: [
    { flags: '--out <file>', help: 'write to this file, which must not exist' },
    { flags: '--pretty', help: 'the payload as readable JSON, if that keeps every byte of the body' },
    { flags: '--force', help: 'overwrite the file' },
  ],
  environment: ['home', 'store'],
  exitCodes: [6],
  load: async () => (await import('./export.js')).runExport,
}
