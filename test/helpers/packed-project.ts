import { execFile } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { emptyFolder } from './context.js'

const run = promisify(execFile)

/** A project in which somebody has installed the packed tarball, and has tools of this one's: vitest, and Node's types. */
export interface PackedProject {
  readonly folder: string
  /** Runs a program there; rejects, with its output, unless it ends with 0. Its standard output. */
  run(program: string, ...args: readonly string[]): Promise<string>
  /** The tool's script, to be run by node. */
  tool(file: string): string
}

export async function packedProject(): Promise<PackedProject> {
  const folder = emptyFolder()
  // Not through "prepare", which would build again under the other tests.
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const { stdout: tarball } = await run('npm', pack)
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  await run('npm', ['install', '--no-audit', '--no-fund', `./${tarball.trim()}`], { cwd: folder })
  for (const name of ['vitest', '@types']) {
    symlinkSync(path.resolve('node_modules', name), path.join(folder, 'node_modules', name))
  }
  return {
    folder,
    async run(program, ...args) {
      try {
        return (await run(program, args, { cwd: folder })).stdout
      } catch (error) {
        const { message, stdout }: Record<string, unknown> = Object(error)
        throw new Error(`${String(message)}\n${String(stdout)}`, { cause: error })
      }
    },
    tool: (file) => path.resolve('node_modules', file),
  }
}
