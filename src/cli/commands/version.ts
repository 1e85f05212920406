import packageJson from '../../../package.json' with { type: 'json' }
import { define } from '../command.js'

export const versionCommand = define({
  description: 'Prints the version of relay, as relay --version does.',
  examples: 'relay version\nrelay version --json',
  run: async () => ({ version: packageJson.version, node: process.version }),
  print: ({ version }, out) => out.result(version),
})
