import type { Command } from 'commander'
import { addOptions, environmentHelp } from './globals.js'

/** Adds the flags that every action takes, and the end of its help. */
export function addActionOptions(command: Command): Command {
  command.option('--dry-run', 'say what would happen, and do nothing')
  return addOptions(command, ['user', 'provider', 'providerUrl']).addHelpText('after', HELP)
}

const HELP = `${environmentHelp(['user', 'provider', 'providerUrl', 'profile', 'home', 'store'])}

Exit codes:
  0 ok                      4 sign-in needed
  1 failure                 8 code host or network refused
  2 usage or settings     130 interrupted`
