import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { COMMAND_NAMES } from '../src/cli/catalog.js'
import { loadCommands } from '../src/cli/commands/index.js'
import { createProgram } from '../src/cli/main.js'
import { testShell } from './rooms/cli-shell.js'

// What src tells people to run, taken from the source: all of it is completed by one function, and can be typed.

/** A node of the syntax tree, of which only these members are read. */
interface Node {
  readonly type: string
  readonly [member: string]: unknown
}

const SRC = path.resolve('src')
const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
/** Where advice is made. */
const COMPLETES = 'base/command-line.ts'

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function* nodesIn(value: unknown, isLeftOut: (node: Node) => boolean): Generator<Node> {
  if (Array.isArray(value)) for (const each of value) yield* nodesIn(each, isLeftOut)
  if (!isNode(value) || isLeftOut(value)) return
  yield value
  for (const member of Object.values(value)) yield* nodesIn(member, isLeftOut)
}

function parsed(
  file: string,
  source = readFileSync(path.join(SRC, file), 'utf8'),
  isLeftOut: (node: Node) => boolean = () => false,
): readonly Node[] {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed`)
  return [...nodesIn(program, isLeftOut)]
}

/** The members of a declaration that are help. */
const HELP_MEMBERS = new Set(['description', 'examples', 'details', 'args', 'options', 'exits'])

/** Whether a node is help of a command: a member of what declares it. */
function isHelp({ type, key }: Node): boolean {
  return type === 'Property' && isNode(key) && HELP_MEMBERS.has(String(key['name']))
}

// Texts that name a command

/** `${}` stands for what a template adds. */
function textOf(node: Node): string | undefined {
  if (node.type === 'JSXText' || node.type === 'Literal')
    return typeof node['value'] === 'string' ? node['value'].replaceAll(/\s+/g, ' ') : undefined
  if (node.type !== 'TemplateLiteral' || !Array.isArray(node['quasis'])) return undefined
  return node['quasis'].map((quasi) => String(quasi.value.cooked).replaceAll(/\s+/g, ' ')).join('${}')
}

/** A command after the name of the program, an option, or what a template or a sum adds. */
const NAMES = new RegExp(String.raw`\brelay (?:(?:${COMMAND_NAMES.join('|')})\b|--\w|\$\{\}|$)`)

function namesCommand(file: string, source?: string): readonly string[] {
  return parsed(file, source, (node) => file.startsWith('cli/') && isHelp(node))
    .flatMap((node) => textOf(node) ?? [])
    .filter((text) => NAMES.test(text))
}

const PROCESS = 'names the program that runs, and nothing to type'
const PAST = 'names what was run before, and nothing to type'
const HELP = 'help, which is about no profile'
const FORM = 'names a form of output, whichever profile it is of'
const ELSEWHERE = 'typed at another machine, of whose profiles nothing is known here'
const NO_TEXT = 'no text for a person: a key, or a name at a server'

/** The only texts that name a command and are not completed. */
const EXCEPTIONS: readonly (readonly [file: string, text: RegExp, why: string])[] = [
  ['auth/accounts.ts', /relay login did not sign that account in/, PAST],
  ['auth/sign-in.ts', /relay login does not see it/, PROCESS],
  ['base/errors.ts', /The log of relay serve says why/, PROCESS],
  ['cli/action.ts', /as relay wait --json prints it|as relay wait --json and relay show/, FORM],
  [
    'cli/commands/completion.ts',
    /relay completion (?:bash|zsh|fish)/,
    'scripts of shells, for every profile',
  ],
  ['cli/commands/config.ts', /^what relay setup stored/, PAST],
  ['cli/checks/diagnose.ts', /a running relay serve with both keys|here and for relay serve$/, PROCESS],
  ['cli/mcp/tools.ts', /^relay \$\{\}, on the code host/, 'says to an agent what a tool does'],
  ['cli/commands/profiles.ts', /^relay serve$/, 'the heading of a column'],
  ['cli/commands/replay.ts', /the running relay serve/, PROCESS],
  ['cli/send.ts', /relay serve runs without|that relay serve was started with/, PROCESS],
  ['cli/commands/setup.ts', /would win over what relay setup stores/, PAST],
  ['cli/help.ts', /./, HELP],
  ['cli/profile.ts', /only relay serve itself can read/, PROCESS],
  ['cli/main.ts', /^relay \$\{\} needs a command/, 'repeats what was typed'],
  ['cli/settings/join.ts', /^the last relay serve$/, PAST],
  ['cli/commands/source.ts', /: relay serve prints the address/, PROCESS],
  ['inspector/page/app.tsx', /^ relay $/, 'the name of the page'],
  ['inspector/page/refused.tsx', /as relay verify does/, FORM],
  ['hub/records.ts', /makes another with relay hub invite$/, ELSEWHERE],
  ['tunnel/hub-client.ts', /with relay hub (?:invite|renew)$/, ELSEWHERE],
  ['tunnel/hub-client.ts', /operator for relay hub \$\{\}/, ELSEWHERE],
  ['tunnel/channel.ts', /makes with relay hub invite$/, ELSEWHERE],
  ['tunnel/hub-tunnel.ts', /makes with relay hub invite$/, ELSEWHERE],
  ['cli/settings/parse.ts', /as relay hub invite prints it$/, FORM],
  ['cli/settings/read.ts', /^relay hub$/, PROCESS],
  ['cli/commands/hub.ts', /start relay serve --tunnel \$\{\}/, ELSEWHERE],
  ['cli/commands/hub/profile.ts', /only relay hub itself can read/, PROCESS],
  ['serve/hub-profile.ts', /is one of relay serve\./, PROCESS],
  ['store/cipher.ts', /^relay \$\{\}$/, NO_TEXT],
  ['store/postgres-server.ts', /^relay \$\{\}$/, NO_TEXT],
]

describe('a text of src that names a command', () => {
  const found = FILES.filter((file) => file !== COMPLETES).flatMap((file) =>
    namesCommand(file).map((text) => ({ file, text })),
  )

  it('is completed for its profile by one function, but for a few that say nothing to type', () => {
    const others = found.filter(
      ({ file, text }) => !EXCEPTIONS.some(([where, words]) => where === file && words.test(text)),
    )
    expect(others).toEqual([])
  })

  it('has no exception that is not needed', () => {
    const unused = EXCEPTIONS.filter(
      ([where, words]) => !found.some(({ file, text }) => where === file && words.test(text)),
    )
    expect(unused).toEqual([])
  })

  it.each([
    ["throw new Error('Run relay login again')"],
    ['const text = `Run relay ${name} again`'],
    ["const text = 'Run relay ' + command"],
    ["const text = 'See relay --help'"],
    ['const page = <p>Run <code>relay inspect</code>.</p>'],
    ['const page = <p>Run relay\n  inspect.</p>'],
    ['const page = html`<p>Run relay doctor</p>`'],
  ])('would be found in %s', (source) => {
    expect(namesCommand('x.tsx', source)).toHaveLength(1)
  })
})

// What is completed

const COMPLETING = new Set(['commandFor', 'commandAt', 'commandLine', 'command', 'anywhere'])

/** Whether a call completes a command: `command('login')`, `parts.command('inspect')`, `profileCommand(profile)('reset')`. */
function completes({ type, callee }: Node): boolean {
  if (type !== 'CallExpression' || !isNode(callee)) return false
  const { property } = callee
  const named = callee.type === 'MemberExpression' && isNode(property) ? property : callee
  if (named.type === 'CallExpression')
    return isNode(named['callee']) && named['callee']['name'] === 'profileCommand'
  return COMPLETING.has(String(named['name']))
}

/** The command lines that an argument can be. What a template adds is a value, or further options. */
function linesOf(argument: unknown): readonly string[] {
  if (!isNode(argument)) return []
  if (argument.type === 'ConditionalExpression')
    return [...linesOf(argument['consequent']), ...linesOf(argument['alternate'])]
  return [textOf(argument) ?? []].flat()
}

const ADVISED = [
  ...new Set(
    FILES.flatMap((file) =>
      parsed(file)
        .filter(completes)
        .flatMap(({ arguments: given }) => (Array.isArray(given) ? linesOf(given.at(-1)) : [])),
    ),
  ),
]

/** Its words, with a value where there is a placeholder. */
function wordsOf(line: string): string[] {
  const typed = line
    .replaceAll(/<[^>]+>/g, 'x')
    .replaceAll(/(?<=[\s=:,'])\$\{\}/g, 'x')
    .replaceAll('${}', '')
  return [...typed.matchAll(/'([^']*)'|(\S+)/g)].map(([word, quoted]) => quoted ?? word)
}

describe('what src completes', () => {
  it('is all that there is', () => {
    expect(ADVISED).toEqual(
      expect.arrayContaining(['login', 'setup', 'doctor', 'reset', 'serve --tunnel', 'source add <scheme>']),
    )
    expect(ADVISED.length).toBeGreaterThan(50)
  })

  it.each(ADVISED.filter((line) => !line.startsWith('${}')))(
    'relay %s has every argument, and no option that there is not',
    async (line) => {
      expect(line).toMatch(/^[ -~]+$/)
      expect(line).not.toContain('...')
      expect(await refusalOf(wordsOf(line))).toBeUndefined()
    },
  )

  it('would be refused without its argument', async () => {
    expect(await refusalOf(wordsOf('source remove'))).toMatch(/missing required argument/)
    expect(await refusalOf(wordsOf('hook add <owner/repo> --ever'))).toMatch(/unknown option/)
  })
})

/** What the program says to words that it does not take; undefined where it would run them, or prints help. */
async function refusalOf(words: readonly string[]): Promise<string | undefined> {
  const { shell } = testShell()
  const commands = await loadCommands(COMMAND_NAMES.filter((name) => words.includes(name)))
  const program = createProgram(shell, async () => {}, commands, { isSilent: true })
  try {
    await program.parseAsync(words, { from: 'user' })
    return undefined
  } catch (error) {
    const { exitCode, message } = Object(error)
    return exitCode === 0 ? undefined : String(message)
  }
}
