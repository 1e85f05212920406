import type { Command } from 'commander'
import { addOptions, environmentHelp, exitCodesHelp } from './globals.js'
import type { OptionName } from './options.js'

const FLAGS: readonly OptionName[] = ['user', 'provider', 'providerUrl']
const ENVIRONMENT: readonly OptionName[] = ['clientId', 'clientSecret', 'home', 'store']

type ExitCodes = Parameters<typeof exitCodesHelp>

/** Adds the flags of every command that acts for a signed-in user, and the end of its help. */
export function addUserOptions(
  command: Command,
  codes: ExitCodes[0] = [0, 1, 2, 4, 8, 130],
  words: ExitCodes[1] = {},
): Command {
  return addOptions(command, FLAGS).addHelpText(
    'after',
    () => `${environmentHelp([...FLAGS, ...ENVIRONMENT])}\n${exitCodesHelp(codes, words)}`,
  )
}
