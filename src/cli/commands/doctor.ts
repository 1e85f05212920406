import { RelayError } from '../../base/errors.js'
import { SETTING_NAMES } from '../settings/table.js'
import { define, type Flags, printEach, type Shell } from '../command.js'
import { diagnose, isFailure, type NamedResult, printChecks } from '../checks/diagnose.js'

/** Settings that have a flag of `relay doctor`, to try another value in one diagnosis. */
const DOCTOR_FLAGS = [
  'user',
  'provider',
  'providerUrl',
  'port',
  'host',
  'publicUrl',
  'baseUrl',
  'store',
] as const

export const doctorCommand = define({
  description: `Checks what a profile needs, such as the database, the tunnel, the OAuth client, the token and the hooks. Each line starts
with "ok", with "x" for a problem, or with "-" for a check that does not apply; a problem is followed by its fix. Changes
nothing, and sends the token only to the code host it came from.`,
  examples: `relay doctor
relay doctor --profile sandbox
relay doctor --json | jq '.checks[] | select(.state == "fail")'`,
  settings: DOCTOR_FLAGS,
  env: SETTING_NAMES.filter((name) => name !== 'profile' && !DOCTOR_FLAGS.some((flag) => flag === name)),
  exits: [[0, 'no problem found'], [1, 'a problem was found'], 130],
  run: runDoctor,
  print: printEach(printChecks),
  json: (checks) => ({ ok: !checks.some(isFailure), checks }),
})

async function* runDoctor(shell: Shell, flags: Flags): AsyncGenerator<readonly NamedResult[]> {
  const checks = await diagnose(shell, flags)
  yield checks
  const failed = checks.filter(isFailure).length
  if (failed > 0) throw new RelayError('unhealthy', `${failed} of ${checks.length} checks failed`)
}
