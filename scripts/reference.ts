// Writes docs/commands.md from the declarations of the commands: `npm run reference`. With --check it writes nothing, and fails
// if the file is stale.
import { readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { COMMAND_NAMES, SUMMARIES } from '../src/cli/catalog.js'
import { type Declaration, exitCodes, type HelpRow } from '../src/cli/command.js'
import { loadCommands } from '../src/cli/commands/index.js'
import {
  joinLines,
  listOf,
  optionsOf,
  RELAY,
  SECRET_FILES,
  variableRows,
  VARIABLES,
} from '../src/cli/help.js'
import { createProgram } from '../src/cli/main.js'
import { defaultText, SETTING_NAMES, settingOf } from '../src/cli/settings/table.js'

const FILE = 'docs/commands.md'

const INTRODUCTION = `# Command reference

<!-- Written by \`npm run reference\` from the declarations in src/cli. Do not edit. -->

Every command, and [every setting](#settings). \`relay <command> --help\` prints the same. The
[options of relay itself](#relay) work with every command.`

const SETTINGS = `A setting is read from its flag, else from its variable, else from \`.env\`, \`relay.json\` or your own \`config.json\`, where
its key is its name. The last column says whether \`relay.json\` can set it: to anything, only to an
address on this machine, or only to sources whose deliveries are proved.
${SECRET_FILES} \`relay config\` prints the settings in force.`

const { stdout, stderr } = process
const context = { stdout, stderr, configFolder: path.join(homedir(), '.config/relay') }

async function reference(): Promise<string> {
  const commands = await loadCommands(COMMAND_NAMES)
  const program = createProgram(context, () => Promise.resolve(), commands)
  const contents = Object.entries(SUMMARIES).map(
    ([name, summary]) => `- [relay ${name}](#relay-${name}): ${summary}`,
  )
  const parts = [
    INTRODUCTION,
    contents.join('\n'),
    ...section(program, RELAY, VARIABLES),
    ...sections(program, commands),
    '## Settings',
    SETTINGS,
    ...table(['Name', '', 'Flag', 'Variable', 'Default', 'relay.json'], SETTING_NAMES.map(settingRow)),
  ]
  return `${parts.join('\n\n')}\n`
}

function sections(parent: Command, specs: Readonly<Record<string, Declaration>> = {}): string[] {
  return Object.entries(specs).flatMap(([name, spec]) => {
    const command = parent.commands.find((one) => one.name() === name) ?? parent
    return [...section(command, spec), ...sections(command, spec.subcommands)]
  })
}

/** The parts of one command. `variables` are further variables. */
function section(command: Command, spec: Declaration, variables: readonly HelpRow[] = []): string[] {
  const { description, examples, details, args = [], env = [], exits } = spec
  const title = titleOf(command)
  const options = optionsOf(spec)
  const isAll = env.length + options.length >= SETTING_NAMES.length - 1
  const rows = [...(isAll ? [] : variableRows(env)), ...variables]
  return [
    `## ${title}`,
    joinLines(description),
    fence('sh', examples),
    ...(details ? listOf(details(context)).map((text) => fence('text', text)) : []),
    fence('text', `${title} ${command.usage()}`.trimEnd()),
    ...named('Argument', args),
    ...table(
      ['Option', '', 'Variable', 'Default'],
      options.map(([flags, help, more = {}]) => [
        code(flags),
        more.repeatable ? `${help} (repeatable)` : help,
        code(more.env),
        more.defaultText ?? code(more.default),
      ]),
    ),
    ...(isAll ? ['Reads [every setting](#settings).'] : []),
    ...named('Variable', rows),
    ...table(
      ['Exit code', ''],
      exitCodes(exits).map(([exit, text]) => [String(exit), text]),
    ),
  ]
}

function named(title: string, rows: readonly (readonly [string, string, ...unknown[]])[]): string[] {
  return table(
    [title, ''],
    rows.map(([name, text]) => [code(name), text.replace('\u00a0', ' ')]),
  )
}

function titleOf(command: Command): string {
  return command.parent ? `${titleOf(command.parent)} ${command.name()}` : command.name()
}

function settingRow(name: (typeof SETTING_NAMES)[number]): string[] {
  const { help, flag, env, project = '' } = settingOf(name)
  return [code(name), help, code(flag), code(env), defaultText(name) ?? '', project]
}

function code(text = ''): string {
  return text && `\`${text}\``
}

function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}

/** A table, or nothing when it has no rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return []
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
  return [[line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')]
}

const text = await reference()
if (!process.argv.includes('--check')) writeFileSync(FILE, text)
else if (readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write(`${FILE} is stale: write it with npm run reference\n`)
  process.exitCode = 1
}
