import {
  anywhere,
  commandLine,
  type CommandPlace,
  hubCommands,
  isStart,
  SANDBOX_PROFILE,
} from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { isServed, type SavedProfile } from '../instance/profile.js'
import type { RunningInstance } from '../instance/protocol.js'
import { portsOfOthers, type Unreachable, unreachableError } from '../instance/running.js'
import type { LoadedSettings } from './settings/read.js'

// Next steps in messages. Their command lines work in the user's shell, for the profile of the message.

/** Facts about a profile that a command line for it depends on. */
export interface Advised extends Pick<LoadedSettings, 'origins' | 'ambientProfile' | 'values'> {
  readonly instance?: Pick<RunningInstance, 'sandbox'> | undefined
  readonly saved?: Pick<SavedProfile, 'sandbox' | 'hub'> | undefined
}

/** Returns these facts under the name of another profile. */
export function aboutProfile<About extends Advised>(about: About, profile: string): About {
  return { ...about, values: { ...about.values, profile } }
}

/**
 * Completes a command line so that it works in this shell for a profile. A command that starts relay avoids the port of
 * another profile's relay. @param command without `relay`
 */
export function commandFor(about: Advised, command: string): string {
  const place = commandPlace(about)
  if (!isStart(command)) return commandLine(place, command)
  const { home, port, profile } = about.values
  const taken = portsOfOthers(home, profile)
  const isFree = !taken.has(port) || command.includes('--port ')
  return commandLine(place, isFree ? command : `${command} --port 0`)
}

/** Profile and settings for the command lines that the folders below complete. */
export function commandPlace(about: Advised): CommandPlace {
  const { values, origins, ambientProfile: ambient, saved, instance } = about
  const known = instance ?? saved
  // Before its first start, that profile is for the sandbox alone.
  const sandbox = known ? known.sandbox : values.profile === SANDBOX_PROFILE
  return { profile: values.profile, sandbox, isNamed: origins.profile !== undefined, ambient }
}

/** Returns the command line that starts a profile's instance, or its hub. */
export function startCommand(about: Advised): string {
  return about.saved?.hub ? hubCommands(about.values.profile)('hub') : commandFor(about, 'serve')
}

/** Makes the error of a command of workstations for the profile of a hub. */
export async function ofHub(about: Advised, folder: string): Promise<RelayError> {
  const { profile } = about.values
  const runs = (await isServed(folder))
    ? 'which runs'
    : `which does not run (${startCommand(about)} starts it)`
  const others = `${hubCommands(profile)('hub list')} lists its channels, and ${anywhere('hub --help')} its other commands`
  return new RelayError(
    'settings',
    `Profile ${profile} is that of a hub, ${runs}. This command is for those of workstations; ${others}`,
  )
}

/** Begins a sentence that advises to restart the instance, which it names, or to start one. */
export function restartText(
  about: Advised & { readonly instance?: Pick<RunningInstance, 'pid' | 'sandbox'> | undefined },
): string {
  const { instance } = about
  return instance
    ? `Restart ${startCommand(about)} (process ${instance.pid})`
    : `Start ${startCommand(about)}`
}

/** Begins a sentence that advises to stop the instance first. Without an instance, returns `otherwise`. */
export function stopFirst(
  { instance }: { readonly instance: Pick<RunningInstance, 'pid'> | undefined },
  otherwise = '',
): string {
  return instance ? `Stop process ${instance.pid}, then ` : otherwise
}

/** Returns the command that signs the user in. It names a user that only a flag of this command names. */
export function loginCommandLine(about: Advised): string {
  const { values, origins } = about
  return commandFor(about, origins.user?.kind === 'flag' ? `login --user ${values.user}` : 'login')
}

/** Returns the command for a user who is not signed in. */
export function signInCommand(about: Advised, hasClient: boolean): string {
  return hasClient ? loginCommandLine(about) : commandFor(about, 'setup')
}

/** Makes a handler that adds the command to an error that only a new sign-in resolves, and throws all errors. */
export function withCommand(command: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RelayError && error.kind === 'unauthenticated')) throw error
    throw new RelayError(error.kind, `${error.message}. Run ${command}`, { cause: error })
  }
}

/** Makes the error of a command that needs the sandbox of a profile. */
export function notRunning(about: Advised): RelayError {
  return new RelayError(
    'unavailable',
    `The sandbox is not running. Start it with ${startCommand({ ...about, saved: { sandbox: true } })}`,
  )
}

/** Makes the error of a command that needs a running instance. `more` is added to the command line that starts one. */
export function notServed(
  about: Advised & { readonly unreachable?: Unreachable | undefined },
  more = '',
): RelayError {
  if (about.unreachable) return unreachableError(about.unreachable)
  return new RelayError(
    'unavailable',
    `No relay is running for profile ${about.values.profile}. Start it with ${startCommand(about)}${more}`,
  )
}

/** Makes the error of a command that needs data in the instance's memory. `what` is a noun phrase, such as "its journal". */
export function onlyInMemory({ pid, profile }: RunningInstance, what: string): RelayError {
  return new RelayError(
    'settings',
    `Process ${pid} serves profile ${profile} with --store memory, so no other process can read ${what}. Start it with --store file`,
  )
}
