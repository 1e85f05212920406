import { commandLine } from '../../base/command-line.js'
import type { InstanceState } from '../api.js'
import { useApi } from './client.js'

/** A command line that works in a terminal for the profile of the instance, once that is known. @param command without `relay` */
export function commandOf(
  { profile, sandbox }: Pick<InstanceState, 'profile' | 'sandbox'>,
  command: string,
): string {
  return commandLine({ profile, sandbox: sandbox === true, isNamed: false }, command)
}

/** The same where the state is not shown. Neither the profile nor its sandbox changes while relay runs. */
export function useCommand(): (command: string) => string {
  const { value } = useApi<InstanceState>('state', () => false)
  return (command) => (value ? commandOf(value, command) : `relay ${command}`)
}
