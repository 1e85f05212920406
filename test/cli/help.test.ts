import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Command, Option } from 'commander'
import { describe, expect, it } from 'vitest'
import { main } from '../../src/cli/main.js'
import { COMMANDS, createProgram } from '../../src/cli/program.js'
import { OPTION_NAMES, isOptionName, specOf, variablesOf } from '../../src/cli/settings/options.js'
import { codeBlocks } from '../helpers/code-blocks.js'
import { testContext } from '../helpers/context.js'
import { commandEnvironment } from '../../src/dispatch/command-environment.js'

/** Flags of curl, git, npm and ssh in examples. */
const OTHER_FLAGS = ['--data-binary', '--global', '--now', '--pipe', '--save-dev', '--stat', '--wait']
/** Its scripts are for other programs. */
const DEPLOY = 'docs/deploy.md'

const tree = (command: Command): Command[] => [command, ...command.commands.flatMap(tree)]
const program = createProgram(testContext().context)
const commands = tree(program).map((command) => [pathOf(command), command] as const)
const options = tree(program).flatMap((command) => command.options)
const REFERENCE = readFileSync('docs/commands.md', 'utf8')
/** What users read besides help. */
const DOCS = [
  'README.md',
  ...readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? `docs/${file}` : [])),
]
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n')

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

describe('the help of each command', () => {
  it.each(commands)('%j: purpose, examples, flags, environment, exit codes, in this order', async (name) => {
    const page = await help(name)
    const headings = page.match(/^(?:Examples|Options|Environment|Exit codes):$/gm)
    expect(page).toMatch(/^Usage: relay .*\n\n[A-Z].*\S\n/)
    expect(headings).toEqual([
      'Examples:',
      'Options:',
      ...(['completion', 'help', 'version'].includes(name) ? [] : ['Environment:']),
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

  it.each(commands)('%j has each variable once', async (name) => {
    const entries = (await help(name)).matchAll(/\(env: (\w+)\)|^ {2}(RELAY_\w+) {2}/gm)
    const variables = Array.from(entries, ([, flag, variable]) => flag ?? variable)
    expect(variables).toEqual([...new Set(variables)])
  })

  it('of serve fits on two screens of 80 × 40', async () => {
    expect((await help('serve')).trimEnd().split('\n').length).toBeLessThanOrEqual(80)
  })

  it('describes each option and argument in one line at most', () => {
    const specs = COMMANDS.flatMap((spec) => [spec, ...(spec.subcommands ?? [])])
    const texts = specs
      .flatMap(({ options = [], arguments: args = [] }) => [...options, ...args])
      .map(({ help }) => help)
    const all = [...texts, ...OPTION_NAMES.map((name) => specOf(name).help)]
    expect(all.filter((text) => text.length > 100 || text.includes('\n') || text.endsWith('.'))).toEqual([])
  })

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
      expect(isOptionName(name) && specOf(name)).toMatchObject({ flag: flags })
    },
  )

  it.each(
    options
      .filter((option) => !isSetting(option) && option.long !== '--version')
      .map((option) => [option.flags, option.attributeName()]),
  )('%s is read', (_, name) => {
    expect(sources).toMatch(new RegExp(`[{,.]\\s*${name}\\b`))
  })

  it('that a help page or the documentation names exists', () => {
    const known = new Set([...options.map(({ long }) => long), '--help', ...OTHER_FLAGS])
    const docs = [...codeBlocks(DEPLOY).values()].reduce((text, block) => text.replace(block, ''), DOCS)
    const named = [...pages, docs].flatMap((page) => page.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [])
    expect([...new Set(named)].filter((flag) => !known.has(flag))).toEqual([])
  })

  it('of a setting belongs to a command, and is in the command reference', () => {
    const flags = OPTION_NAMES.flatMap((name) => specOf(name).flag ?? [])
    expect(flags.filter((flag) => !options.some((option) => option.flags === flag))).toEqual([])
    expect(flags.filter((flag) => !REFERENCE.includes(`\`${flag}\``))).toEqual([])
  })
})

describe('every variable', () => {
  it('that a help page or the documentation names is read', () => {
    const delivery = { event: '', action: '', repo: '', deliveryId: '' }
    const known = new Set([
      ...OPTION_NAMES.flatMap(variablesOf),
      'RELAY_DEBUG',
      'RELAY_TEST_ALL',
      ...Object.keys(commandEnvironment({}, delivery)),
    ])
    const named = [...pages, DOCS].flatMap((page) => page.match(/\bRELAY_[A-Z_]+\b/g) ?? [])
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })

  it('is in the command reference, and in the help of relay config', async () => {
    const page = await help('config')
    const names = OPTION_NAMES.map((name) => specOf(name).env)
    expect(names.filter((name) => !REFERENCE.includes(`\`${name}\``) || !page.includes(name))).toEqual([])
  })
})
