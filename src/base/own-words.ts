import { RelayError } from './errors.js'

/** Names of the command line, and those of an embedding program for the same. */
const SETTINGS: Readonly<Record<string, string>> = {
  '--profile': 'the setting folder',
  RELAY_HOME: 'the setting folder',
  '--sandbox-port': 'the setting sandbox.port',
  '--allow-host': 'the setting allowedHosts',
}

/**
 * Runs what starts a relay for an embedding program, which has settings in place of flags and variables. Its errors name
 * those.
 * @throws RelayError of the same kind as that of `work`, its `cause`; anything else unchanged
 */
export async function inOwnWords<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof RelayError)) throw error
    const message = error.message.replaceAll(/(?<![\w-])(?:--[a-z][a-z-]+|RELAY_HOME)\b/g, settingOf)
    if (message === error.message) throw error
    throw new RelayError(error.kind, message, { cause: error })
  }
}

function settingOf(name: string): string {
  const own = name.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  return SETTINGS[name] ?? `the setting ${own}`
}
