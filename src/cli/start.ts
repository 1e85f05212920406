import type { Context } from './context.js'
import { packageVersion } from './version.js'

/** Runs one command line as {@link main} does, and loads that unless only the version is wanted, as scripts often do. */
export async function start(argv: readonly string[], context: Context): Promise<number> {
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    context.stdout.write(`${packageVersion()}\n`)
    return 0
  }
  const { main } = await import('./main.js')
  return main(argv, context)
}
