import { describe, expect, it } from 'vitest'
import { shell, startServed } from './rig.js'

const TARGET = 'octo/demo#1'

/** Commands that end by themselves, each with what it takes to succeed. */
const COMMANDS = [
  ['config'],
  ['token'],
  ['whoami'],
  ['comment', TARGET, 'hello'],
  ['comment', TARGET, 'hello', '--dry-run'],
  ['react', TARGET, 'heart'],
  ['merge', 'octo/demo#2'],
  ['revoke'],
]

describe('--json', () => {
  it('makes every command print one document', async () => {
    await using served = await startServed()
    for (const argv of COMMANDS) {
      const { code, out, err } = await served.shell.run([...argv, '--json'])
      expect({ argv, code, err }).toEqual({ argv, code: 0, err: '' })
      expect(JSON.parse(out)).toMatchObject({ v: 1 })
      expect(out.split('\n')).toHaveLength(2)
    }
  })

  it.each(
    COMMANDS.filter(([name]) => !['config', 'revoke'].includes(name ?? '')).filter(
      (argv) => !argv.includes('--dry-run'),
    ),
  )('leaves stdout empty when %s fails, and the error is an object on stderr', async (...argv) => {
    const { code, out, err } = await shell().run([...argv, '--json'])
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(JSON.parse(err)).toEqual({
      v: 1,
      type: 'error',
      code: 'unauthenticated',
      error: expect.stringContaining('relay login'),
    })
  })
})
