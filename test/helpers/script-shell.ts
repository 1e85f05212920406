import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { emptyFolder } from './context.js'

export interface ScriptResult {
  readonly code: number
  readonly out: string
}

/** A folder for PATH in which `relay` is the built program, and in which `program` makes others. */
export function programFolder() {
  const bin = emptyFolder()
  const program = (name: string, command: string): string => {
    const file = path.join(bin, name)
    writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"\n`)
    chmodSync(file, 0o755)
    return file
  }
  program('relay', `"${process.execPath}" "${path.resolve('dist/bin/relay.js')}"`)
  return { bin, program }
}

/** A shell in which `relay` is the built program and the browser presses Authorize. */
export function scriptShell(env: Readonly<Record<string, string>>) {
  const { bin, program } = programFolder()
  const browser = program(
    'browser',
    `"${process.execPath}" --import "${import.meta.resolve('tsx')}" "${path.resolve('test/e2e/programs/authorize.ts')}"`,
  )
  const cwd = path.join(bin, 'work')
  mkdirSync(cwd)
  const PATH = `${bin}:${process.env['PATH']}`
  return (script: string): Promise<ScriptResult> =>
    new Promise((resolve) => {
      const options = { cwd, env: { PATH, HOME: bin, BROWSER: browser, RELAY_USER: 'ada', ...env } }
      const child = execFile('bash', ['-o', 'pipefail', '-c', script], options, (_, out) => {
        resolve({ code: child.exitCode ?? -1, out })
      })
    })
}
