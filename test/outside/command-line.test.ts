import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { place, type Place } from '../kit/place.js'
import { prints, run, type RunContext } from '../kit/run.js'
import { bare, example, GITHUB_TRIGGERS } from './example.js'
import { json, shared } from './fixture.js'

describe('relay', () => {
  it('prints the version', async () => {
    expect(await run(['--version'])).toEqual(prints(`${packageJson.version}\n`))
  })

  it.each([
    ['token', 4, 'unauthenticated', 'ada is not signed in, or the sign-in has ended. Run relay setup'],
    ['serve --prot 1', 2, 'usage', "unknown option '--prot'\n(Did you mean --port?)"],
    ['hook', 2, 'usage', 'relay hook needs a command. relay hook --help lists them'],
  ])('reports a failure of relay %s as an object under --json', async (line, exit, code, error) => {
    const ran = await run([...line.split(' '), '--json'], { env: { RELAY_USER: 'ada' } })
    const err = `${JSON.stringify({ v: 1, type: 'error', code, error })}\n`
    expect(ran).toEqual({ code: exit, out: '', err })
  })

  it('treats --json after -- as an argument', async () => {
    const { err } = await run(['comment', 'nowhere', '--', '--json'])
    expect(err).toMatch(/^error: /)
  })

  it('runs without arguments as help', async () => {
    const { code, out, err } = await run([])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('Usage: relay')
    const lines = out.split('\n')
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(lines.length).toBeLessThanOrEqual(40)
    const commands = [...readFileSync('docs/commands.md', 'utf8').matchAll(/^## relay (\S+)$/gm)]
    expect(commands.filter(([, name]) => !new RegExp(`[ ,]${name}\\b`).test(out))).toEqual([])
  })

  it('explains a command, the settings, and how to continue', async () => {
    expect((await run(['help'])).out).toBe((await run([])).out)
    expect(await run(['help', 'serve'])).toEqual(await run(['serve', '--help']))
    expect(await run(['help', 'routes', 'test'])).toEqual(await run(['routes', 'test', '--help']))
    const { code, out } = await run(['help', 'settings'])
    expect(code).toBe(0)
    expect(out).toMatch(/^ {2}RELAY_PORT, --port +port to listen on/m)
    expect(await run(['version'])).toEqual(prints(`${packageJson.version}\n`))
    const version: unknown = JSON.parse((await run(['version', '--json'])).out)
    expect(version).toEqual({ v: 1, version: packageJson.version, node: process.version })
  })
})

/** What a command prints on a terminal, or on none, and whether any of it is painted. */
async function painted(
  argv: string[],
  { tty = true, env = {} }: { tty?: boolean; env?: Record<string, string> } = {},
) {
  const over: Partial<RunContext> = tty ? { terminal: { columns: 40, streams: ['stdout', 'stderr'] } } : {}
  const all = { RELAY_PROVIDER: 'sandbox', RELAY_PORT: '0', RELAY_USER: 'ada', ...env }
  const { code, out, err } = await run(argv, { ...over, env: all })
  return { code, out: out.includes('\u001b['), err: err.includes('\u001b[') }
}

describe('colour', () => {
  it.each<[string, Parameters<typeof painted>[1], string[], boolean]>([
    ['a terminal', {}, [], true],
    ['no terminal', { tty: false }, [], false],
    ['NO_COLOR', { env: { NO_COLOR: '1' } }, [], false],
    ['a dumb terminal', { env: { TERM: 'dumb' } }, [], false],
    ['--color always in a pipe', { tty: false }, ['--color', 'always'], true],
    ['--color always over NO_COLOR', { env: { NO_COLOR: '1' } }, ['--color=always'], true],
    ['--color never on a terminal', {}, ['--color', 'never'], false],
  ])('%s: result and error alike', async (_, where, flags, isPainted) => {
    expect(await painted(['doctor', ...flags], where)).toEqual({ code: 1, out: isPainted, err: isPainted })
    const refused = await painted([...flags, 'config', '--reveal', 'x'], where)
    expect(refused).toEqual({ code: 2, out: false, err: isPainted })
  })

  it('is in nothing a program reads', async () => {
    const ran = await painted(['doctor', '--json', '--color', 'always'])
    expect(ran).toEqual({ code: 1, out: false, err: false })
  })
})

const TARGET = 'octo/demo#1'

/** Commands that end by themselves, each with what it takes to succeed. */
const COMMANDS = [
  'config',
  'token',
  'whoami',
  `comment ${TARGET} hello`,
  `comment ${TARGET} hello --dry-run`,
  `react ${TARGET} heart`,
  'merge octo/demo#2',
  'revoke',
].map((line) => line.split(' '))

describe('--json', () => {
  it('makes every command print one document', async () => {
    await using here = await place({ signedIn: true })
    await here.serve()
    for (const argv of COMMANDS) {
      const { code, out, err } = await here.run(...argv, '--json')
      expect({ argv, code, err }).toEqual({ argv, code: 0, err: '' })
      expect(JSON.parse(out)).toMatchObject({ v: 1 })
      expect(out.split('\n')).toHaveLength(2)
    }
  })
})

const READING = [
  'log',
  'show last',
  'wait * --since 2023-11-14',
  'routes test last',
  'verify 1',
  'trigger --list',
  'trigger push --print',
  'replay 1 --to http://127.0.0.1:1',
]

describe('relay', () => {
  const journal = shared(example)

  it.each(READING)('%s warns once of a setting', async (line) => {
    const env = { BASE_URL: '/', RELAY_WEBHOOK_SECRET: 'secret' }
    const { err } = await journal.runWith({ env }, ...line.split(' '))
    expect(err.match(/^warning: .*$/gm)).toEqual([expect.stringContaining('BASE_URL is ignored')])
  })
})

describe('no command that reads', () => {
  it.each([
    'whoami',
    'token',
    'revoke',
    'comment octo/demo#1 hello',
    'merge octo/demo#1',
    'react octo/demo#1 rocket',
    'login --no-browser',
    'log',
    'wait push',
    'show last',
    'trigger push',
    'replay last',
    'profiles',
    'reset',
    'config',
    'doctor --port 0 --provider sandbox',
  ])('makes a profile: %s', async (line) => {
    await using here = await place({ host: 'none' })
    await here.run(...line.split(' '))
    const { err } = await here.run(...line.split(' '), '--profile', 'typo')
    const names = err.includes('error: There is no profile typo. There are none yet. ')
    expect(names).toBe(!['profiles', 'config'].includes(line))
    expect(readdirSync(here.home)).toEqual([])
  })
})

describe('relay completion', () => {
  const offers = async (here: Place, shell: string, ...typed: string[]): Promise<string[]> =>
    (await here.run('completion', shell, '--', ...typed)).out.trim().split('\n')

  it('offers what the profile has, and makes none', async () => {
    await using here = await example()
    const offered = (...typed: string[]) => offers(here, 'bash', ...typed)
    expect(await offered('show', '')).toEqual(['last', '5', '4', '3', '2', '1'])
    expect(await offered('--profile', '')).toEqual(['default'])
    expect(await offered('trigger', '')).toEqual(GITHUB_TRIGGERS)
    expect(await offered('wait', '')).toEqual(expect.arrayContaining(['push', 'issues', 'issues.opened']))
    expect(await offered('help', 'insp')).toEqual(['inspect'])
    expect(await offered('help', 'routes', '')).toEqual(['add', 'remove', 'test'])
    expect(await offered('replay', 'la')).toEqual([':files', 'last'])
    await using empty = await bare()
    expect(await offers(empty, 'bash', 'show', '')).toEqual(['last'])
    expect(await offers(empty, 'bash', '--profile', '')).toEqual([''])
    expect(readdirSync(empty.home)).toEqual([])
  })

  it('offers what the one running instance has', async () => {
    await using here = await place()
    const relay = await here.serve()
    await relay.deliver()
    const entry = expect.stringMatching(/^1:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d push$/)
    expect(await offers(here, 'zsh', 'show', '')).toEqual(['last:the newest entry', entry])
    expect(await offers(here, 'zsh', 'trigger', '')).toEqual(GITHUB_TRIGGERS)
  })

  it('wraps its script for a program', async () => {
    const script = (await run(['completion', 'fish'])).out.trimEnd()
    const object = await json(run(['completion', 'fish', '--json']))
    expect(object).toEqual({ v: 1, shell: 'fish', script })
  })
})
