import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const run = promisify(execFile)

/** Runs the program named first, and ends what it prints with a line of the files it has read. */
const LOADED = `
const fs = require('node:fs')
const files = []
for (const name of ['readFileSync', 'openSync']) {
  const read = fs[name]
  fs[name] = (file, ...rest) => {
    files.push(file)
    return read(file, ...rest)
  }
}
process.on('exit', () => console.log(JSON.stringify(files)))
require(process.argv[1])`

async function filesLoaded(...args: string[]): Promise<string[]> {
  const program = path.resolve('dist/bin/relay.js')
  const { stdout } = await run(process.execPath, ['-e', LOADED, '--', program, ...args])
  const files: string[] = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
  const folder = `${path.dirname(program)}${path.sep}`
  return files.flatMap((file) => (file.startsWith(folder) ? path.relative(folder, file) : [])).toSorted()
}

// Each file more is about a millisecond at every start.
it.each([
  ['--version', ['relay.js']],
  ['--help', ['main.js', 'relay.js']],
])('relay %s loads few files', async (flag, files) => {
  expect(await filesLoaded(flag)).toEqual(files)
})

it('imports packages by way of one file, so that all others can be kept compiled', () => {
  const folder = path.resolve('dist/bin')
  const files = readdirSync(folder).filter((file) => file.endsWith('.js'))
  const importing = files.filter((file) =>
    /\bimport\(("[^"]+"|\w+)\)/.test(readFileSync(path.join(folder, file), 'utf8')),
  )
  // The keychain's helper is a program of its own.
  expect(importing.toSorted()).toEqual(['import.js', 'keychain-helper.js'])
})
