/** Profile that is used when none is named and none runs alone. */
export const DEFAULT_PROFILE = 'default'
/** Profile of `serve --sandbox` when none is named. */
export const SANDBOX_PROFILE = 'sandbox'
/** Profile of `relay hub` when none is named. */
export const HUB_PROFILE = 'hub'

/** The profile of a command line, with the settings that decide whether `--profile` must be written. */
export interface CommandPlace {
  readonly profile: string
  /** True if the profile is served with an embedded sandbox. It then cannot be served without `--sandbox`. */
  readonly sandbox: boolean
  /** True if a flag, the environment or a file names the profile. */
  readonly isNamed: boolean
  /** Profile that the environment and the files name, for every command line of the same shell. */
  readonly ambient?: string | undefined
}

/**
 * Completes a command line of relay, given without `relay`, `--sandbox` and `--profile`, for one profile. Every part that
 * names a command in a message is given one: only the edge of the process knows which flags, environment and files
 * choose the profile.
 */
export type Command = (line: string) => string

/** Returns {@link commandLine} for one profile. */
export function commandsOf(place: CommandPlace): Command {
  return (line) => commandLine(place, line)
}

/** Completes commands where only the name of the profile is known, and always names it. */
export function profileCommand(profile: string): Command {
  return (line) => `relay ${line} --profile ${profile}`
}

/** Completes the commands of a hub's operator. */
export function hubCommands(profile: string): Command {
  return (line) => (profile === HUB_PROFILE ? `relay ${line}` : `relay ${line} --profile ${profile}`)
}

/** Completes commands where no profile is known: in help, and for a word that cannot be read. */
export const anywhere: Command = (line) => `relay ${line}`

/** Commands that start a service. */
const START = /^(?:serve|mcp --serve)\b/

/** True if a command line starts a service. */
export function isStart(command: string): boolean {
  return START.test(command)
}

/**
 * Formats a command line of relay that works where it is typed. Commands that start a sandbox get `--sandbox`;
 * `--profile` is left out only if the same profile is chosen without it. All advice that names a command uses this
 * function.
 * @param command without `relay`, `--sandbox` and `--profile`
 */
export function commandLine({ profile, sandbox, isNamed, ambient }: CommandPlace, command: string): string {
  const starts = isStart(command)
  const line = starts && sandbox ? command.replace(START, '$& --sandbox') : command
  const usual = starts && sandbox ? SANDBOX_PROFILE : DEFAULT_PROFILE
  // Without `--profile`, any other command chooses the profile that runs alone.
  const isImplied = profile === usual && (starts ? (ambient ?? usual) === usual : !isNamed)
  return isImplied ? `relay ${line}` : `relay ${line} --profile ${profile}`
}
