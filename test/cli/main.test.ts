import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { createProgram } from '../../src/cli/program.js'
import { emptyFolder, testContext } from '../helpers/context.js'
import packageJson from '../../package.json' with { type: 'json' }

async function run(argv: string[], env: Record<string, string> = {}) {
  const { context, out, err } = testContext({ env: { RELAY_HOME: emptyFolder(), ...env } })
  return { code: await main(argv, context), out: out(), err: err() }
}

describe('main', () => {
  it('prints the version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, out: `${packageJson.version}\n`, err: '' })
  })

  it('prints help on stdout when asked, within 80 columns', async () => {
    const { code, out, err } = await run(['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('Usage: relay [options] [command]')
    expect(out.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  it.each([
    [['sreve'], "error: unknown command 'sreve'\n(Did you mean serve?)\n(relay --help lists the commands)\n"],
    [
      ['serve', '--prot', '1'],
      "error: unknown option '--prot'\n(Did you mean --port?)\n(relay --help lists the commands)\n",
    ],
    [
      ['serve', '--color', 'blue'],
      "error: option '--color <when>' argument 'blue' is invalid. Allowed choices are auto, always, never.\n(relay --help lists the commands)\n",
    ],
    [['serve', '--port', 'x'], 'error: --port: must be a whole number from 0 to 65535\n'],
    [
      ['serve', '--provider', 'gitea'],
      'error: RELAY_PROVIDER_URL is not set. Set it to the address of your gitea, for example https://git.example.com\n',
    ],
  ])('%j is a usage error', async (argv, err) => {
    expect(await run(argv)).toEqual({ code: 2, out: '', err })
  })

  it('reports a failure as an object under --json, and nothing on stdout', async () => {
    expect(await run(['token', '--json', '--user', 'ada'])).toEqual({
      code: 4,
      out: '',
      err: '{"v":1,"type":"error","code":"unauthenticated","error":"ada is not signed in, or no longer; sign in: relay login"}\n',
    })
  })

  it('reports a usage error as an object too', async () => {
    expect(await run(['serve', '--json', '--prot', '1'])).toEqual({
      code: 2,
      out: '',
      err: '{"v":1,"type":"error","code":"usage","error":"unknown option \'--prot\'\\n(Did you mean --port?)"}\n',
    })
  })

  it('treats --json after -- as an argument', async () => {
    const { err } = await run(['comment', 'nowhere', '--', '--json'])
    expect(err).toMatch(/^error: /)
  })

  it('runs without arguments as help, a usage error', async () => {
    const { code, out, err } = await run([])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain('Usage: relay')
  })
})

describe('help', async () => {
  const { context } = testContext()
  const tree = (command: Command): Command[] => [command, ...command.commands.flatMap(tree)]
  const program = createProgram(context)
  const commands = tree(program)

  it.each(commands.map((command) => [command.name(), command] as const))(
    '%s says what it is for',
    (_, command) => {
      expect(command.description()).not.toBe('')
      for (const option of command.options) expect(option.description).not.toBe('')
    },
  )

  it.each(program.commands.map((command) => [command.name(), command] as const))(
    '%s gives examples before its flags',
    (_, command) => {
      expect(command.helpInformation()).toMatch(/Examples:[^]*Options:/)
    },
  )
})
