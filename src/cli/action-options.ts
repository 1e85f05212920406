import type { Command } from 'commander'
import { addOptions, environmentHelp, exitCodesHelp } from './globals.js'
import type { OptionName } from './options.js'

const FLAGS: readonly OptionName[] = ['user', 'provider', 'providerUrl']
const ENVIRONMENT: readonly OptionName[] = ['clientId', 'clientSecret', 'home', 'store']

/** Adds the flags that every action takes, and the end of its help. */
export function addActionOptions(command: Command): Command {
  command.option('--dry-run', 'say what would happen, and do nothing')
  return addOptions(command, FLAGS).addHelpText(
    'after',
    `${environmentHelp([...FLAGS, ...ENVIRONMENT])}
${exitCodesHelp([0, 1, 2, 4, 8, 130])}`,
  )
}
