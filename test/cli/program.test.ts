import { Help } from 'commander'
import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { createProgram } from '../../src/cli/program.js'
import { testContext } from '../helpers/context.js'

const { context } = testContext()
const all = (await createProgram(context)).commands
const NAMES = all.map((command) => command.name())

/** The commands that are listed for a command line, and those of them that are declared. */
async function commandsFor(argv: readonly string[]) {
  const { commands } = await createProgram(context, { argv })
  const declared = commands.filter((command) => command.description() !== '')
  return { listed: commands.map((command) => command.name()), declared: declared.map((c) => c.name()) }
}

describe('a command line that begins with a command', () => {
  it.each(NAMES)('has that one alone: %s', async (name) => {
    const names = name === 'completion' ? NAMES : [name]
    expect(await commandsFor([name, '--help'])).toEqual({ listed: names, declared: names })
  })

  it('also where it names another', async () => {
    expect(await commandsFor(['comment', 'log'])).toEqual({ listed: ['comment'], declared: ['comment'] })
  })
})

describe('any other command line', () => {
  it.each([[[]], [['--help']], [['lgo']], [['toString']], [['']]])(
    'has all listed, none declared: %j',
    async (argv) => {
      expect(await commandsFor(argv)).toEqual({ listed: NAMES, declared: [] })
    },
  )

  it('has those declared that it names, behind flags or as their values', async () => {
    const argv = ['--json', '--profile', 'show', 'log']
    expect(await commandsFor(argv)).toEqual({ listed: NAMES, declared: ['log', 'show'] })
  })

  it('has all declared where it names the one that speaks of all', async () => {
    expect(await commandsFor(['--json', 'completion', 'bash'])).toEqual({ listed: NAMES, declared: NAMES })
  })
})

describe('the list of all commands', () => {
  it.each(all.map((command) => [command.name(), command] as const))(
    'shows of %s what its declaration says',
    async (_, command) => {
      const { context, out } = testContext()
      await main(['--help'], context)
      expect(out()).toContain(`\n  ${new Help().subcommandTerm(command)} `)
    },
  )
})
