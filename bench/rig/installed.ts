import { spawnSync } from 'node:child_process'

/** Why a program of the system cannot be started; undefined when it can. */
export function lacking(...commands: readonly string[]): string | undefined {
  const absent = commands.filter((command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).error)
  return absent.length > 0 ? `${absent.join(', ')} not installed` : undefined
}
