import { RelayError } from './errors.js'

/** Names of the command line, and those of an embedding program for the same. */
const SETTINGS: Readonly<Record<string, string>> = {
  '--profile': 'the setting folder',
  RELAY_HOME: 'the setting folder',
  '--sandbox-port': 'the setting sandbox.port',
  '--allow-host': 'the setting allowedHosts',
}

/**
 * Runs what an embedding program calls, which has settings in place of flags and variables. Its errors name those.
 * @param nameOf the words for a flag or a variable. Default: those for its setting
 * @throws RelayError of the same kind as that of `work`, its `cause`; anything else unchanged
 */
export async function inOwnWords<Result>(
  work: () => Promise<Result>,
  nameOf: (flag: string) => string = settingOf,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw inSettings(error, nameOf)
  }
}

/** Converts an error to one that names settings. */
export function inSettings(error: unknown, nameOf: (flag: string) => string = settingOf): unknown {
  if (!(error instanceof RelayError)) return error
  const message = error.message.replaceAll(/(?<![\w-])(?:--[a-z][a-z-]+|RELAY_HOME)\b/g, nameOf)
  return message === error.message ? error : new RelayError(error.kind, message, { cause: error })
}

function settingOf(name: string): string {
  const own = name.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  return SETTINGS[name] ?? `the setting ${own}`
}
