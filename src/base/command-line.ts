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

/** The commands that start a service. */
const START = /^(?:serve|mcp --serve)\b/

/**
 * A command line of relay that works where it is typed: what starts a sandbox has `--sandbox`, and `--profile` is left out only where the line
 * chooses the same profile without it. All advice is made here. @param command without `relay`, `--sandbox` and `--profile`
 */
export function commandLine({ profile, sandbox, isNamed, ambient }: CommandPlace, command: string): string {
  const isStart = START.test(command)
  const line = isStart && sandbox ? command.replace(START, '$& --sandbox') : command
  const usual = isStart && sandbox ? SANDBOX_PROFILE : DEFAULT_PROFILE
  // Any other command chooses a profile that runs alone, where none is named.
  const isImplied = profile === usual && (isStart ? (ambient ?? usual) === usual : !isNamed)
  return isImplied ? `relay ${line}` : `relay ${line} --profile ${profile}`
}
