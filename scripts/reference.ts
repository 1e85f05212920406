// Writes docs/commands.md from the declarations of the commands, and the tables of docs/senders.md from the table of senders:
// `npm run reference`. With --check it writes nothing, and fails if a file is stale.
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
import { triggerEvents } from '../src/replay/synthesize.js'
import type { JwtRules } from '../src/senders/jwt.js'
import { isBearer } from '../src/senders/proof.js'
import { isInBody } from '../src/senders/scheme.js'
import { ROWS, rowScheme } from '../src/senders/table.js'
import { schemeOf } from '../src/senders/senders.js'
import { throughSmee } from '../src/senders/through-smee.js'
import { HUB_PROOF, type SenderRow } from '../src/senders/table/row.js'

const FILE = 'docs/commands.md'
const SENDERS_FILE = 'docs/senders.md'

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

/** The page of senders, with its tables written again between their marks. */
function sendersPage(): string {
  const all = [...ROWS].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const senders = all.map(([name, { title, page, secret }]) => [code(name), `[${title}](${page})`, secret])
  const proofs = [['github', HUB] as const, ...all].map(([name, row]) => [code(name), ...provenBy(row)])
  const carried = ['github', ...all.map(([name]) => name)].map((name) => {
    const { arrives, but } = throughSmee(rowScheme(name) ?? schemeOf(name))
    return [code(name), ARRIVES[arrives], but.join('; ')]
  })
  const tables = {
    tunnel: table(['scheme', 'restored', 'but'], carried),
    senders: table(['scheme', 'sender', 'secret'], senders),
    examples: table(
      ['scheme', 'events'],
      all.map(([name]) => [code(name), triggerEvents(name).map(code).join(' ')]),
    ),
    proofs: table(['scheme', 'signed', 'time, tolerance', 'delivery id', 'event'], proofs),
  }
  return Object.entries(tables).reduce(
    (page, [name, [rows = '']]) => {
      const [start, end] = [`<!-- ${name}: written by npm run reference -->`, `<!-- end of ${name} -->`]
      const [before = '', rest = ''] = page.split(start)
      const [, after = ''] = rest.split(end)
      return `${before}${start}\n\n${rows}\n\n${end}${after}`
    },
    readFileSync(SENDERS_FILE, 'utf8'),
  )
}

const ARRIVES = { whole: 'yes', objects: 'JSON objects', json: 'JSON', none: '**no**' }

const HUB = { proofs: [HUB_PROOF], event: ['x-github-event'], id: ['x-github-delivery'] }

/** What proves a delivery of a sender, and what does not, as the cells of a table. */
function provenBy({ proofs, event, id = [] }: Pick<SenderRow, 'proofs' | 'event' | 'id'>): string[] {
  const first = proofs.find(({ digest }) => digest === undefined)
  const isToken = first !== undefined && isBearer(first)
  const text = first?.signed ?? ''
  const parts = Array.from(text.matchAll(/\{([\w-]+|\$[^}]*)\}/g), ([, part = '']) =>
    part.startsWith('$') ? 'members of the body' : (WORDS[part] ?? part),
  )
  const isWhole = /\{(?:body|body-sha256|fields)\}/.test(text)
  const covered = first?.jwt?.digest ? ['body, by its SHA-256'] : [...new Set(parts)]
  const signed = isToken ? '**nothing**' : covered.join(', ')
  const isOpen = (place: string): boolean =>
    isToken || !(isWhole || text.includes(place.split('.').at(-1) ?? ''))
  const { time, id: signedId } = first ?? {}
  const place = time && isInBody(time.place) ? ', in the body' : ''
  const ofToken = first?.jwt && tokenTime(first.jwt)
  const tolerance =
    ofToken ?? (time && time.tolerance !== Infinity ? `yes${place}, ${durationWords(time.tolerance)}` : 'no')
  const where = (places: readonly string[], none: string): string =>
    [
      ...new Set(
        places.map((each) =>
          isInBody(each) ? (isOpen(each) ? '**in the body**' : 'in the body') : '**header**',
        ),
      ),
    ].join(' or ') || none
  return [
    signed,
    tolerance,
    signedId === undefined ? where(id, 'none') : 'signed header',
    where(event, 'none'),
  ]
}

/** Until when a token is accepted. */
function tokenTime({ maxAge, digest, isBody }: JwtRules): string {
  if (maxAge !== undefined) return `yes, ${durationWords(maxAge)}`
  return (digest ?? isBody) ? 'if the token has an end' : "yes, the token's end"
}

function durationWords(ms: number): string {
  if (ms < 60_000) return `${ms / 1000} seconds`
  return ms === 60_000 ? '1 minute' : `${ms / 60_000} minutes`
}

const WORDS: Readonly<Record<string, string>> = {
  timestamp: 'time',
  url: 'address',
  'body-sha256': 'digest of the body',
}

const texts = { [FILE]: await reference(), [SENDERS_FILE]: sendersPage() }
for (const [file, text] of Object.entries(texts)) {
  if (!process.argv.includes('--check')) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${file} is stale: write it with npm run reference\n`)
    process.exitCode = 1
  }
}
