// Preparations before the program is loaded. A failure from here on ends the process with one line and an exit code.
import { writeFileSync } from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import packageJson from '../package.json' with { type: 'json' }

/**
 * Prints the version if that is all the arguments ask for. Scripts do so often, and it needs nothing of the program.
 */
function isVersionWritten([flag = '', ...others]: readonly string[]): boolean {
  if (others.length > 0 || !['--version', '-V'].includes(flag)) return false
  try {
    // Not written with `process.stdout`, which would load streams.
    writeFileSync(1, `${packageJson.version}\n`)
    return true
  } catch {
    // The program itself reports problems of the output.
    return false
  }
}

/**
 * Finds the home folder before libraries ask for it while they are loaded. A container's user can have only a number,
 * and no entry in the password file: RELAY_HOME is then used as HOME. Returns an error message, or undefined.
 */
function findHome({ env }: NodeJS.Process): string | undefined {
  try {
    homedir()
    return undefined
  } catch {
    if (!env['RELAY_HOME'])
      return `Your home folder is not known: HOME is not set, and user ${process.getuid?.()} is not in the password file. Set HOME or RELAY_HOME to a folder that you can write to`
    env['HOME'] = env['RELAY_HOME']
    return undefined
  }
}

function end(text: string, exitCode: number): void {
  process.exitCode = exitCode
  try {
    writeFileSync(2, `error: ${text}\n`)
  } catch {
    // Standard error is gone, too. The exit code still reports the failure.
  }
}

if (!isVersionWritten(process.argv.slice(2))) {
  // Node 22.8 and later cache compiled code between starts, for modules loaded after this call.
  Object(module).enableCompileCache?.()
  const problem = findHome(process)
  if (problem === undefined)
    import('./process.js').catch((error: unknown) =>
      end(`relay cannot start: ${error instanceof Error ? error.message : String(error)}`, 1),
    )
  else end(problem, 2)
}
