import { describe, expect, it } from 'vitest'
import { commandOf, createProgram } from '../../src/cli/program.js'
import { testContext } from '../helpers/context.js'

const { context } = testContext()
const namesOf = (only?: string): string[] =>
  createProgram(context, { only }).commands.map((command) => command.name())

describe('a command line that begins with a command', () => {
  it.each(namesOf())('has that one alone declared: %s', (name) => {
    expect(namesOf(commandOf([name, '--help']))).toEqual(name === 'completion' ? namesOf() : [name])
  })

  it.each([[[]], [['--json', 'log']], [['lgo']], [['toString']], [['']]])('else all are: %j', (argv) => {
    expect(namesOf(commandOf(argv))).toEqual(namesOf())
  })
})
