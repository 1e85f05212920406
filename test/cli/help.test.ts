import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Command, Option } from 'commander'
import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { OPTION_NAMES, OPTIONS, isOptionName, type OptionRow } from '../../src/cli/options.js'
import { createProgram } from '../../src/cli/program.js'
import { testContext } from '../helpers/context.js'
import { commandEnvironment } from '../../src/dispatch/command-environment.js'

const tree = (command: Command): Command[] => [command, ...command.commands.flatMap(tree)]
const program = await createProgram(testContext().context)
const commands = tree(program).map((command) => [pathOf(command), command] as const)
const options = tree(program).flatMap((command) => command.options)
const README = readFileSync('README.md', 'utf8')

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}`.trim() : ''
}

async function help(command: string, columns = 80): Promise<string> {
  let out = ''
  const stdout = { columns, isTTY: true, write: (text: string) => (out += text) }
  expect(await main([...command.split(' ').filter(Boolean), '--help'], testContext({ stdout }).context)).toBe(
    0,
  )
  return out
}

const pages = await Promise.all(commands.map(async ([name]) => help(name)))
const rows: Readonly<Record<string, OptionRow<unknown>>> = OPTIONS
const row = (name: string): OptionRow<unknown> | undefined => rows[name]

describe('the help of each command', () => {
  it.each(commands)('%j: purpose, examples, flags, environment, exit codes, in this order', async (name) => {
    const page = await help(name)
    expect(page).toMatch(/^Usage: relay .*\n\n[A-Z].*\S\n/)
    expect(page.match(/^(?:Examples|Options|Environment|Exit codes):$/gm)).toEqual([
      'Examples:',
      'Options:',
      'Environment:',
      'Exit codes:',
    ])
    expect(page).toMatch(/\nExamples:\n {2}(?:source <\()?relay /)
  })

  it.each(commands.flatMap(([name]) => [40, 80].map((columns) => [name, columns] as const)))(
    '%j fits a terminal of %i columns, but for single words',
    async (name, columns) => {
      const lines = (await help(name, columns)).split('\n')
      expect(lines.filter((line) => line.length > columns && line.trim().includes(' '))).toEqual([])
    },
  )

  it('is no wider than 100 columns, however wide the terminal', async () => {
    expect((await help('serve', 300)).split('\n').filter((line) => line.length > 100)).toEqual([])
  })
})

describe('every flag', () => {
  const sources = readdirSync('src/cli', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(path.join('src/cli', file), 'utf8'))
    .join('\n')
    .replaceAll(/\/\*[^]*?\*\/|\/\/.*|'(?:[^'\\\n]|\\.)*'|readonly \w+\??:/g, '')

  const isSetting = (option: Option): boolean => isOptionName(option.attributeName())

  it.each(options.filter(isSetting).map((option) => [option.flags, option.attributeName()]))(
    '%s is that of a setting',
    (flags, name) => {
      expect(row(name)).toMatchObject({ flag: flags })
    },
  )

  it.each(
    options
      .filter((option) => !isSetting(option) && option.long !== '--version')
      .map((option) => [option.flags, option.attributeName()]),
  )('%s is read', (_, name) => {
    expect(sources).toMatch(new RegExp(`[{,.]\\s*${name}\\b`))
  })

  it('that a help page or the README names exists', () => {
    const others = ['--data-binary', '--stat', '--save-dev'] // curl's, git's and npm's
    const known = new Set([...options.map(({ long }) => long), '--help', ...others])
    const named = [...pages, README].flatMap((page) => page.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [])
    expect(named.filter((flag) => !known.has(flag))).toEqual([])
  })

  it('of a setting has a command that takes it, and is in the README', () => {
    const flags = OPTION_NAMES.flatMap((name) => row(name)?.flag ?? [])
    expect(flags.filter((flag) => !options.some((option) => option.flags === flag))).toEqual([])
    expect(flags.filter((flag) => !README.includes(`\`${flag.split(' ')[0]}\``))).toEqual([])
  })
})

describe('every variable', () => {
  const read = new Set(
    Object.values(rows).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
  )

  it('that a help page or the README names is read', () => {
    const delivery = { event: '', action: '', repo: '', deliveryId: '' }
    const others = new Set([
      'RELAY_DEBUG',
      'RELAY_TEST_ALL',
      ...Object.keys(commandEnvironment({}, delivery)),
    ])
    const named = [...pages, README].flatMap((page) => page.match(/\bRELAY_[A-Z_]+\b/g) ?? [])
    expect(named.filter((name) => !read.has(name) && !others.has(name))).toEqual([])
  })

  it('is in the README, and in the help of relay config', async () => {
    const page = await help('config')
    const names = Object.values(rows).map(({ env }) => env)
    expect(names.filter((name) => !README.includes(`\`${name}\``) || !page.includes(name))).toEqual([])
  })
})
