import type { CommandSpec } from '../../command.js'

export const inspect: CommandSpec = {
  name: 'inspect',
  group: 'Journal:',
  summary: 'see deliveries in the browser',
  description: `Opens the inspector of the running relay serve in the browser: a page where deliveries appear as they come. It shows
one delivery with its payload, its signature and every attempt, forwards it again, sends an edited copy, and explains what was
refused. A code that works once opens it, and appears in no process list.`,
  examples: [
    'relay inspect',
    'relay inspect last',
    'relay inspect --no-browser  print the address and the code, also over SSH',
  ],
  arguments: [{ name: '[entry]', help: 'entry number, or last' }],
  options: [{ flags: '--no-browser', help: 'print the address and a code instead of opening it' }],
  environment: ['home', 'store'],
  exitCodes: [[1, 'no relay serve runs'], [7, 'the browser did not open the page within a minute'], 130],
  load: async () => (await import('./inspect.js')).runInspect,
}
