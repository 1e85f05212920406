import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { emptyFolder, type Env } from './folder.js'
import { type Answering, receiver } from './receiver.js'
import { LEASH, PROGRAM, type Ran, start } from './run.js'

export type ProgramFolder = ReturnType<typeof programFolder>

/**
 * A folder for PATH with programs that a test makes, in which `relay` is the built program. `leashed`: it ends with the test process,
 * which it can only where it inherits file descriptor 3, as in {@link shell}.
 */
export function programFolder({ leashed = false } = {}) {
  const folder = emptyFolder()
  /** Makes a program of a command and what is given after it. Its file. */
  const add = (name: string, command: string): string => {
    const file = path.join(folder, name)
    writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"\n`)
    chmodSync(file, 0o755)
    return file
  }
  add('relay', `"${process.execPath}" ${leashed ? `--import "${LEASH}"` : ''} "${PROGRAM}"`)
  return { path: `${folder}:${process.env['PATH']}`, add }
}

/** Runs a script with bash, whose home folder is the parent of its working folder. */
export type Shell = (script: string) => Promise<Ran>

/** A shell in which `relay` is the built program, also to the programs that it starts. */
export function shell(env: Env, programs = programFolder({ leashed: true })): Shell {
  const home = emptyFolder()
  const cwd = path.join(home, 'work')
  mkdirSync(cwd)
  const all = { HOME: home, RELAY_HOME: undefined, ...env, PATH: programs.path }
  return async (script) => {
    const wrapper = ['bash', '-o', 'pipefail', '-c', script]
    await using running = start([], { wrapper, cwd, env: all, stdin: '' })
    const { code, signal, out, err } = await running.ended
    if (code === null) throw new Error(`the script was ended by ${signal}: ${script}\n${err}`)
    return { code, out, err }
  }
}

/** A program for BROWSER, which sends each address that it is to open to a receiver. `person` does what a person does with an address before the program ends. */
export async function browserProgram(programs: ProgramFolder, person?: Answering) {
  const opened = await receiver(person)
  const post = `fetch('${opened.url}', { method: 'POST', body: process.argv[1] })`
  return {
    command: programs.add('browser', `"${process.execPath}" -e "${post}"`),
    opened,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}
