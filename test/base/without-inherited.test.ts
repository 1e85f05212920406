import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { type Start } from '../../src/base/without-inherited.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../kit/needs.js'

const PROGRAM = path.join(import.meta.dirname, 'programs/start-without.ts')

/** A file that is open as descriptor 77 in the program below: Node closes only the first ones that it inherits. */
const inherited = path.join(emptyFolder(), 'inherited')
writeFileSync(inherited, '')

/** What the descriptors of a program are that is started so; its standard input and output are pipes. */
function descriptors(start: Partial<Start> = {}, bash?: string): Record<string, string> {
  const plain: Start = { command: 'sh', args: ['-c', 'exec cat'], stdio: ['pipe', 'pipe', 'ignore'] }
  const spec = JSON.stringify({ start: { ...plain, ...start }, bash })
  const opened = ['-c', 'exec 77<"$0"; exec "$@"', inherited]
  const args = [...opened, process.execPath, '--import', 'tsx', PROGRAM, spec]
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the program wrote it
  return JSON.parse(execFileSync('bash', args, { encoding: 'utf8' })) as Record<string, string>
}

const CONNECTED = expect.stringMatching(/^socket:/)
const OWN = { 0: CONNECTED, 1: CONNECTED, 2: '/dev/null' }

describeWith('Linux', 'withoutInherited', () => {
  it('gives a program the descriptors named, and no others', () => {
    expect(descriptors()).toEqual(OWN)
  })

  it('leaves those alone that are named after standard error', () => {
    expect(descriptors({ stdio: ['pipe', 'pipe', 'ignore', 77] })).toEqual({ ...OWN, 3: inherited })
  })

  it('passes the arguments unchanged', () => {
    const script = '[ "$0" = "a b" ] && [ "$1" = \'$x "\' ] && [ $# = 1 ] && exec cat'
    expect(descriptors({ args: ['-c', script, 'a b', '$x "'] })).toEqual(OWN)
  })

  it('covers the others with /dev/null where there is no bash', () => {
    const { 0: stdin, 1: stdout, 2: stderr, 77: covered, ...others } = descriptors({}, '/no/bash')
    expect({ 0: stdin, 1: stdout, 2: stderr }).toEqual(OWN)
    expect(covered).toBe('/dev/null')
    // Others that the test itself was started with.
    expect([...new Set(Object.values(others))]).toEqual(Object.values(others).length > 0 ? ['/dev/null'] : [])
  })
})
