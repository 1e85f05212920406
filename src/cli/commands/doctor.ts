import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Context } from '../context.js'
import type { Finding } from '../doctor/finding.js'
import { addOptions, createOutputFor, environmentHelp, exitCodesHelp, type RawOptions } from '../globals.js'
import { OPTION_NAMES, type OptionName } from '../options.js'
import { printable, type Output, type Paint } from '../output.js'

/** What may be said for this one diagnosis. */
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

/** Declares `relay doctor`. */
export function declareDoctor(command: Command, context: Context, run = runDoctor): void {
  command.description(
    `Checks what a profile needs: Node, folder, store, keychain, instance, port, tunnel, code host, clock, webhook
secret, OAuth client, token, addresses. Each line begins with "ok", with "x" when something is wrong, followed by what mends it, or with
"-" when it does not apply. Changes nothing, and sends no token anywhere.

Examples:
  relay doctor
  relay doctor --profile sandbox
  relay doctor --json | jq '.checks[] | select(.state == "wrong")'`,
  )
  addOptions(command, FLAGS)
    .addHelpText(
      'after',
      () => `${environmentHelp(OPTION_NAMES)}
${exitCodesHelp([0, 1, 2, 130], { 0: 'nothing is wrong', 1: 'something is' })}`,
    )
    .action((_: unknown, doctor: Command) => run(context, doctor.optsWithGlobals()))
}

async function runDoctor(context: Context, flags: RawOptions): Promise<void> {
  const output = createOutputFor(context, flags)
  const { diagnose } = await import('../doctor/diagnose.js')
  const nodeVersion = process.versions.node
  const findings = await diagnose(context, flags, { log: output.log, nodeVersion })
  const bad = findings.filter(({ state }) => state === 'wrong').length
  if (flags.json) output.object({ ok: bad === 0, checks: findings })
  else print(findings, output)
  if (bad > 0) throw new RelayError('unhealthy', `${bad} of ${findings.length} checks failed`)
}

const SIGNS = { ok: 'ok', wrong: 'x', none: '-' } as const

function print(findings: readonly Finding[], output: Output): void {
  const width = Math.max(...findings.map(({ check }) => check.length))
  for (const { check, state, text, mend } of findings) {
    output.result(`${painted(state, output.resultPaint)}  ${check.padEnd(width)}  ${printable(text)}`)
    if (mend !== undefined) output.result(`${' '.repeat(width + 6)}mend: ${printable(mend)}`)
  }
}

function painted(state: Finding['state'], paint: Paint): string {
  const sign = SIGNS[state].padEnd(2)
  if (state === 'none') return paint.dim(sign)
  return state === 'ok' ? paint.green(sign) : paint.red(sign)
}
