import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { emptyFolder, testContext } from '../helpers/context.js'

/** What a command prints on a terminal, or on none, and whether any of it is painted. */
async function run(
  args: string[],
  { tty = true, env = {} }: { tty?: boolean; env?: Record<string, string> } = {},
) {
  let out = ''
  let err = ''
  const { context } = testContext({
    env: { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'sandbox', RELAY_PORT: '0', RELAY_USER: 'ada', ...env },
    stdout: { isTTY: tty, columns: 40, write: (text) => (out += text) },
    stderr: { isTTY: tty, columns: 40, write: (text) => (err += text) },
  })
  const code = await main(args, context)
  const painted = (text: string): boolean => text.includes('\u001b[')
  return { code, out: painted(out), err: painted(err) }
}

describe('colour', () => {
  it.each<[string, Parameters<typeof run>[1], string[], boolean]>([
    ['a terminal', {}, [], true],
    ['no terminal', { tty: false }, [], false],
    ['NO_COLOR', { env: { NO_COLOR: '1' } }, [], false],
    ['a dumb terminal', { env: { TERM: 'dumb' } }, [], false],
    ['--color always in a pipe', { tty: false }, ['--color', 'always'], true],
    ['--color always over NO_COLOR', { env: { NO_COLOR: '1' } }, ['--color=always'], true],
    ['--color never on a terminal', {}, ['--color', 'never'], false],
  ])('%s: result and error alike', async (_, where, flags, painted) => {
    expect(await run(['doctor', ...flags], where)).toEqual({ code: 1, out: painted, err: painted })
    expect(await run([...flags, 'config', '--reveal', 'x'], where)).toEqual({
      code: 2,
      out: false,
      err: painted,
    })
  })

  it('is in nothing a program reads', async () => {
    expect(await run(['doctor', '--json', '--color', 'always'])).toEqual({ code: 1, out: false, err: false })
  })
})
