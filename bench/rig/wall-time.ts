import { spawnSync } from 'node:child_process'

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Milliseconds from starting a program to its end. @throws Error when it fails. */
export function wallTime({ command, args, env }: Command): number {
  const begun = performance.now()
  const { status, error, stderr } = spawnSync(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ms = performance.now() - begun
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(' ')}: ${stderr.toString()}`)
  return ms
}
