import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { COMMANDS, createProgram } from '../../src/cli/program.js'
import { OPTION_NAMES, specOf } from '../../src/cli/settings/options.js'
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
    [
      ['sreve'],
      "error: unknown command 'sreve'\n(Did you mean relay serve?)\n(relay --help lists the commands)\n",
    ],
    [
      ['serve', '--prot', '1'],
      "error: unknown option '--prot'\n(Did you mean --port?)\nUsage: relay serve [options]\n(relay serve --help says more)\n",
    ],
    [
      ['serve', '--color', 'blue'],
      "error: option '--color <when>' argument 'blue' is invalid. Allowed choices are auto, always, never.\n(relay --help lists the commands)\n",
    ],
    [
      ['logout'],
      "error: unknown command 'logout'\n(Did you mean relay revoke?)\n(relay --help lists the commands)\n",
    ],
    [
      ['tail'],
      "error: unknown command 'tail'\n(Did you mean relay log --follow?)\n(relay --help lists the commands)\n",
    ],
    [
      ['resend'],
      "error: unknown command 'resend'\n(Did you mean relay replay?)\n(relay --help lists the commands)\n",
    ],
    [['xyz'], "error: unknown command 'xyz'\n(relay --help lists the commands)\n"],
    [['help', 'logout'], 'error: There is no command logout. Did you mean relay revoke?\n'],
    [['help', 'xyz'], 'error: There is no command xyz. relay help names the commands\n'],
    [
      ['show'],
      "error: missing required argument 'entry'\nUsage: relay show [options] <entry>\n(relay show --help says more)\n",
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
      err: '{"v":1,"type":"error","code":"unauthenticated","error":"ada is not signed in, or the sign-in has ended. Run relay login"}\n',
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
    const lines = err.split('\n')
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(lines.length).toBeLessThanOrEqual(40)
    const named = COMMANDS.filter(({ name }) => !new RegExp(`[ ,]${name}\\b`).test(err))
    expect(named).toEqual([])
  })

  it('explains a command, the settings, and how to continue', async () => {
    expect((await run(['help'])).out).toBe((await run([])).err)
    expect(await run(['help', 'serve'])).toEqual(await run(['serve', '--help']))
    expect(await run(['help', 'routes', 'test'])).toEqual(await run(['routes', 'test', '--help']))
    const { code, out } = await run(['help', 'settings'])
    expect(code).toBe(0)
    expect(OPTION_NAMES.filter((name) => !out.includes(`  ${specOf(name).env}`))).toEqual([])
    expect(await run(['version'])).toEqual({ code: 0, out: `${packageJson.version}\n`, err: '' })
    const version: unknown = JSON.parse((await run(['version', '--json'])).out)
    expect(version).toEqual({ v: 1, version: packageJson.version, node: process.version })
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
