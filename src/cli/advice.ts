import { commandLine, type CommandPlace, isStart } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import type { SavedProfile } from '../instance/profile.js'
import type { RunningInstance } from '../instance/protocol.js'
import { portsOfOthers, type Unreachable, unreachableError } from '../instance/running.js'
import type { LoadedSettings } from './settings/read.js'

// Command lines that a message names as the next step. They work in the shell of the user, for the profile that the message is about.

/** The profile that a command line is for, and what a process knows of it. */
export interface Advised extends Pick<LoadedSettings, 'origins' | 'ambientProfile' | 'values'> {
  readonly instance?: Pick<RunningInstance, 'sandbox'> | undefined
  readonly saved?: Pick<SavedProfile, 'sandbox'> | undefined
}

/** The same settings for advice about another profile. */
export function aboutProfile<About extends Advised>(about: About, profile: string): About {
  return { ...about, values: { ...about.values, profile } }
}

/**
 * A command line that works in this shell for a profile, as `commandLine` completes it; a start takes no port that a relay of another profile
 * has. @param command without `relay`
 */
export function commandFor(about: Advised, command: string): string {
  const place = commandPlace(about)
  if (!isStart(command)) return commandLine(place, command)
  const { home, port, profile } = about.values
  const taken = portsOfOthers(home, profile)
  const isFree = !taken.has(port) || command.includes('--port ')
  return commandLine(place, isFree ? command : `${command} --port 0`)
}

/** What the command lines of this shell are for, as rooms below need it that are about the profile longer than one message. */
export function commandPlace(about: Advised): CommandPlace {
  const { values, origins, ambientProfile: ambient, saved, instance } = about
  const sandbox = (instance ?? saved)?.sandbox === true
  return { profile: values.profile, sandbox, isNamed: origins.profile !== undefined, ambient }
}

/** The command line that starts a profile's instance. */
export function startCommand(about: Advised): string {
  return commandFor(about, 'serve')
}

/** How to restart the instance, or to start one: the beginning of a sentence, which names its process. */
export function restartText(
  about: Advised & { readonly instance?: Pick<RunningInstance, 'pid' | 'sandbox'> | undefined },
): string {
  const { instance } = about
  return instance
    ? `Restart ${startCommand(about)} (process ${instance.pid})`
    : `Start ${startCommand(about)}`
}

/** What another start needs first, as the beginning of a sentence; without an instance, `otherwise`. */
export function stopFirst(
  { instance }: { readonly instance: Pick<RunningInstance, 'pid'> | undefined },
  otherwise = '',
): string {
  return instance ? `Stop process ${instance.pid}, then ` : otherwise
}

/** The command by which the user signs in, in another shell, too. */
export function loginCommandLine(about: Advised): string {
  const { values, origins } = about
  return commandFor(about, origins.user?.kind === 'flag' ? `login --user ${values.user}` : 'login')
}

/** The next step of a user who is not signed in. */
export function signInCommand(about: Advised, hasClient: boolean): string {
  return hasClient ? loginCommandLine(about) : commandFor(about, 'setup')
}

/** Adds the command to an error that only a new sign-in resolves. */
export function withCommand(command: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RelayError && error.kind === 'unauthenticated')) throw error
    throw new RelayError(error.kind, `${error.message}. Run ${command}`, { cause: error })
  }
}

/** The error where a command needs the sandbox of a profile. */
export function notRunning(about: Advised): RelayError {
  return new RelayError(
    'unavailable',
    `The sandbox is not running. Start it with ${startCommand({ ...about, saved: { sandbox: true } })}`,
  )
}

/** The error where a command needs the running instance. `more` continues the command line that starts one, and the sentence. */
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

/** The error of a command that needs data which only the instance has. `what` is a noun phrase, such as "its journal". */
export function onlyInMemory({ pid, profile }: RunningInstance, what: string): RelayError {
  return new RelayError(
    'settings',
    `Process ${pid} serves profile ${profile} with --store memory, so no other process can read ${what}. Start it with --store file`,
  )
}
