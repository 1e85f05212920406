import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { codeBlocks } from '../kit/code-blocks.js'
import { place } from '../kit/place.js'
import { run } from '../kit/run.js'
import { entriesOf, type HelpEntry, helpPages, sectionsOf } from './help-pages.js'

/** Flags of other programs in examples: curl, docker compose, git, gosmee, npm, ssh, and the clients of agents. */
const OTHER_FLAGS = [
  '--add-mcp',
  '--allow-build',
  '--allow-scripts',
  '--cli',
  '--data-binary',
  '--detach',
  '--file',
  '--global',
  '--ignore-scripts',
  '--max-body-size',
  '--now',
  '--pipe',
  '--save-dev',
  '--scope',
  '--shutdown',
  '--stat',
  '--stdio',
  '--tool-name',
  '--wait',
]
/** Its scripts are for other programs. */
const DEPLOY = 'docs/deploy.md'
const REFERENCE = readFileSync('docs/commands.md', 'utf8')
/** What users read besides help. */
const DOCS = [
  'README.md',
  ...readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? `docs/${file}` : [])),
]
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n')

const pages = await helpPages()
const commands = [...pages.keys()]
const { out: settingsPage } = await run(['help', 'settings'])

const pageOf = (command: string): string => pages.get(command) ?? ''

/** The flags of a command, without those of relay itself. */
const optionsOf = (command: string): HelpEntry[] => sectionsOf(pageOf(command)).get('Options') ?? []
const options = commands.flatMap(optionsOf)

/** A setting: its variable, its flag if it has one, and what is said of it. */
const settings = entriesOf(settingsPage).map(({ term, text }) => {
  const [variable = '', flag] = term.split(', ')
  return { variable, flag, text }
})

/** The page of a command as a terminal of so many columns shows it. */
async function help(command: string, columns: number): Promise<string> {
  const argv = [...command.split(' ').filter(Boolean), '--help']
  const { code, out } = await run(argv, { terminal: { columns, streams: ['stdout'] } })
  expect(code).toBe(0)
  return out
}

/** Lines that are too long, but for single words. */
const beyond = (columns: number, page: string): string[] =>
  page.split('\n').filter((line) => line.length > columns && line.trim().includes(' '))

describe('the help of each command', () => {
  it('is that of every command of the reference', () => {
    const named = [...REFERENCE.matchAll(/^## relay(?: (.*))?$/gm)].map(([, name = '']) => name)
    expect(commands.toSorted()).toEqual(named.toSorted())
  })

  it.each(commands)('%j: purpose, examples, flags, environment, exit codes, in this order', (name) => {
    const page = pageOf(name)
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

  it.each(commands.flatMap((name) => [40, 80].map((columns) => [name, columns] as const)))(
    '%j fits a terminal of %i columns, but for single words',
    async (name, columns) => {
      expect(beyond(columns, await help(name, columns))).toEqual([])
    },
  )

  it.each(commands)('%j has each variable once', (name) => {
    const entries = pageOf(name).matchAll(/\(env: (\w+)\)|^ {2}(RELAY_\w+) {2}/gm)
    const variables = Array.from(entries, ([, flag, variable]) => flag ?? variable)
    expect(variables).toEqual([...new Set(variables)])
  })

  it('has a text below its name where it would begin in the right half', async () => {
    expect(await help('config', 60)).toContain('\n  RELAY_WEBHOOK_SECRET_PREVIOUS\n      ')
  })

  it('of serve fits on two screens of 80 × 40', () => {
    expect(pageOf('serve').trimEnd().split('\n').length).toBeLessThanOrEqual(80)
  })

  it('describes each option and argument in one line at most', () => {
    const given = commands.flatMap((name) => sectionsOf(pageOf(name)).get('Arguments') ?? [])
    const texts = [...options, ...given, ...settings].map(({ text }) => text)
    const described = texts.map((text) => text.replaceAll(/ ?\((?:repeatable|env: .*?|default: .*?)\)/g, ''))
    expect(described.filter((text) => text === '' || text.length > 100 || text.endsWith('.'))).toEqual([])
  })

  it('is no wider than 100 columns, however wide the terminal', async () => {
    expect((await help('serve', 300)).split('\n').filter((line) => line.length > 100)).toEqual([])
  })
})

describe('every flag', () => {
  const flagsOf = ({ term }: HelpEntry): string[] => term.match(/--[a-z][a-z-]*/g) ?? []

  it.each(options.filter(({ text }) => text.includes('(env: ')).map(({ term, text }) => [term, text]))(
    '%s is that of a setting',
    (term, text) => {
      const [, variable] = /\(env: (\w+)\)/.exec(text) ?? []
      const flag = settings.find((setting) => setting.variable === variable)?.flag
      expect(flagsOf({ term, text })).toEqual([flag])
    },
  )

  it('that a help page or the documentation names exists', () => {
    const known = new Set([...options.flatMap(flagsOf), ...OTHER_FLAGS])
    const docs = [...codeBlocks(DEPLOY).values()].reduce((text, block) => text.replace(block, ''), DOCS)
    const named = [...pages.values(), settingsPage, docs].flatMap(
      (page) => page.match(/(?<![\w-])--[a-z][a-z-]*/g) ?? [],
    )
    expect([...new Set(named)].filter((flag) => !known.has(flag))).toEqual([])
  })

  it('of a setting belongs to a command, and is in the command reference', () => {
    const terms = settings.flatMap(({ flag }) =>
      flag === undefined ? [] : (options.find((option) => flagsOf(option).includes(flag))?.term ?? flag),
    )
    expect(terms.filter((term) => !options.some((option) => option.term === term))).toEqual([])
    expect(terms.filter((term) => !REFERENCE.includes(`\`${term}\``))).toEqual([])
  })
})

describe('every example', () => {
  const blocks = [REFERENCE, readFileSync('README.md', 'utf8')].flatMap((text) =>
    [...text.matchAll(/^```\w*\n([^]*?)^```/gm)].map(([, block = '']) => block),
  )
  const lines = blocks
    .join('')
    .split('\n')
    .map((line) => line.replace(/ {2}.*/, ''))
  /** Words as a shell reads them, as far as examples need. */
  const wordsOf = (line: string): string[] =>
    [...line.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"])+/g)].map(([word]) => word.replaceAll(/['"]/g, ''))
  const examples = lines.flatMap((line) =>
    [...line.matchAll(/(?:^|[|&;(] *|npx )relay ((?:'[^']*'|"[^"]*"|[^|&;<>)'"])*)/g)].map(([, args = '']) =>
      args.trim(),
    ),
  )

  it.each([...new Set(examples)].filter((each) => !each.includes('[options]')))(
    'relay %s is a command line',
    async (each) => {
      const { err } = await run(wordsOf(each), { signal: AbortSignal.abort() })
      // What the parser refuses.
      expect(err).not.toMatch(/^Usage: /m)
    },
  )
})

describe('every variable', () => {
  it('that a help page or the documentation names is read', async () => {
    const known = new Set([
      ...settings.map(({ variable }) => variable),
      ...(await variablesOfCommands()),
      'RELAY_DEBUG',
      'RELAY_TEST_ALL',
    ])
    const named = [...pages.values(), settingsPage, DOCS].flatMap(
      (page) => page.match(/\bRELAY_[A-Z_]+\b/g) ?? [],
    )
    // The name of a source is part of the variable.
    const ofSource = /^RELAY_SOURCE_(?:\w+_SECRET|$)/
    const others = [...new Set(named)].filter((name) => !known.has(name) && !ofSource.test(name))
    // What is neither a setting nor its file would change nothing.
    const without = await Promise.all(
      others.map(async (name) => {
        const { code, err } = await run(['config'], { env: { [name]: '/none' } })
        return code === 2 && err.includes(name) ? [] : name
      }),
    )
    expect(without.flat()).toEqual([])
  })

  it('is in the command reference, and in the help of relay config', () => {
    const page = pageOf('config')
    const names = settings.map(({ variable }) => variable)
    expect(names.filter((name) => !REFERENCE.includes(`\`${name}\``) || !page.includes(name))).toEqual([])
  })

  it('is that of a setting which relay config shows', async () => {
    const shown: { settings: object } = JSON.parse((await run(['config', '--json'])).out)
    expect(settings).toHaveLength(Object.keys(shown.settings).length)
  })
})

/** What relay tells a command that it runs for a delivery. */
async function variablesOfCommands(): Promise<string[]> {
  await using here = await place({ host: 'none' })
  const file = path.join(here.cwd, 'env')
  const relay = await here.serveWith({ env: { FILE: file } }, '--exec', 'env > "$FILE"')
  await relay.deliver({ event: 'issues', body: '{"action":"opened","repository":{"full_name":"octo/demo"}}' })
  await relay.object({ type: 'attempt', outcome: 'succeeded' })
  return readFileSync(file, 'utf8').match(/^RELAY_\w+/gm) ?? []
}
