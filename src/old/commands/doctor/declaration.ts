import type { CommandSpec } from '../../command.js'
import { OPTION_NAMES, type OptionName } from '../../settings/options.js'

/** The settings with a flag, to try another value in this one diagnosis. */
const FLAGS: readonly OptionName[] = [
  'user',
  'provider',
  'providerUrl',
  'port',
  'host',
  'publicUrl',
  'baseUrl',
  'store',
]

export const doctor: CommandSpec = {
  name: 'doctor',
  group: 'Setup:',
  summary: 'diagnose problems and suggest fixes',
  description: `Checks what a profile needs, such as the database, the tunnel, the OAuth client, the token and the hooks; of a
shared database also its key, clock, durability, connections and rights. Each line starts with "ok", with "x" for a problem, or
with "-" for a check that does not apply; a problem is followed by its fix. Changes nothing, and sends the token only to the
code host it came from.`,
  examples: [
    'relay doctor',
    'relay doctor --profile sandbox',
    `relay doctor --json | jq '.checks[] | select(.state == "fail")'`,
  ],
  settings: FLAGS,
  environment: OPTION_NAMES.filter((name) => name !== 'profile' && !FLAGS.includes(name)),
  exitCodes: [[0, 'no problem found'], [1, 'a problem was found'], 130],
  load: async () => (await import('./doctor.js')).runDoctor,
}
