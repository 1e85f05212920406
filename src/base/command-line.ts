/** The profile where none is named, and none runs alone. */
export const DEFAULT_PROFILE = 'default'
/** The profile of `serve --sandbox` where none is named. */
export const SANDBOX_PROFILE = 'sandbox'

/** The profile that a command line is for, and what decides how it has to be written. */
export interface CommandPlace {
  readonly profile: string
  /** Whether the profile is served with an embedded sandbox: it cannot be served without `--sandbox`. */
  readonly sandbox: boolean
  /** Whether a flag, the environment or a file names the profile. */
  readonly isNamed: boolean
  /** The profile that the environment and files name, for every command line of the same shell. */
  readonly ambient?: string | undefined
}

/**
 * Completes a command line of relay for one profile, where it is to be typed. What names a command in a message is given one: only the edge of the
 * process knows which flags, environment and files choose the profile. @param line without `relay`, `--sandbox` and `--profile`
 */
export type Command = (line: string) => string

/** {@link commandLine} for one profile. */
export function commandsOf(place: CommandPlace): Command {
  return (line) => commandLine(place, line)
}

/** The commands of a profile of which the name alone is known: it is named wherever another could be meant. */
export function profileCommand(profile: string): Command {
  return (line) => `relay ${line} --profile ${profile}`
}

/** A command line about no profile, or where none is known: of help, and of a word that cannot be read. */
export const anywhere: Command = (line) => `relay ${line}`

/** The commands that start a service. */
const START = /^(?:serve|mcp --serve)\b/

/** Whether a command line starts a service. */
export function isStart(command: string): boolean {
  return START.test(command)
}

/**
 * A command line of relay that works where it is typed: what starts a sandbox has `--sandbox`, and `--profile` is left out only where the line
 * chooses the same profile without it. All advice is made here. @param command without `relay`, `--sandbox` and `--profile`
 */
export function commandLine({ profile, sandbox, isNamed, ambient }: CommandPlace, command: string): string {
  const starts = isStart(command)
  const line = starts && sandbox ? command.replace(START, '$& --sandbox') : command
  const usual = starts && sandbox ? SANDBOX_PROFILE : DEFAULT_PROFILE
  // Any other command chooses a profile that runs alone, where none is named.
  const isImplied = profile === usual && (starts ? (ambient ?? usual) === usual : !isNamed)
  return isImplied ? `relay ${line}` : `relay ${line} --profile ${profile}`
}
