import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'

const PROGRAM = path.resolve('dist/bin/relay.js')

/** Runs a shell's command line, in which `relay` is the built program, and tells how it ended and what stderr had. */
function run(line: string): { code: number | null; err: string } {
  const env = { PATH: process.env['PATH'], HOME: emptyFolder(), NODE: process.execPath, PROGRAM }
  const script = `relay() { "$NODE" "$PROGRAM" "$@"; }\n${line}`
  const { status, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', script], { env, encoding: 'utf8' })
  return { code: status, err: stderr }
}

const LOST = { type: 'error', code: 'storage' }

describeWith('Linux', 'output that cannot be written', () => {
  it.each(['completion bash', '--help', 'config'])('is a failure of relay %s', (command) => {
    const { code, err } = run(`relay ${command} > /dev/full`)
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/^error: The output could not be written: .+\n$/),
    })
  })

  it('is printed as an object where objects were asked for', () => {
    const { code, err } = run('relay config --json > /dev/full')
    expect([code, JSON.parse(err)]).toMatchObject([1, LOST])
  })

  it('is a failure also where a part of it could be', () => {
    const file = path.join(emptyFolder(), 'out')
    const { code, err } = run(`ulimit -f 1; relay completion bash > ${file}`)
    expect([code, err]).toEqual([1, expect.stringContaining('could not be written')])
    expect(readFileSync(file).length).toBeGreaterThan(0)
  })

  it('does not hide a failure that cannot be printed', () => {
    expect(run('relay --nonsense 2> /dev/full')).toEqual({ code: 2, err: '' })
  })
})

describe('output without a reader', () => {
  it('is no failure', () => {
    expect(run('relay completion bash | true')).toEqual({ code: 0, err: '' })
  })
})
