import type { Command } from 'commander'
import { addOptions, environmentHelp } from './globals.js'

/** Adds the flags of every command that is about one signed-in user, and the end of its help. */
export function addUserOptions(command: Command, exitCodes: string): Command {
  command.option('--user <id>', 'this user, RELAY_USER (default: your name on this machine)')
  return addOptions(command, ['provider', 'providerUrl', 'store']).addHelpText(
    'after',
    `${environmentHelp(['provider', 'providerUrl', 'store', 'home', 'profile'])}
  RELAY_USER  the user

Exit codes:
${exitCodes}`,
  )
}
