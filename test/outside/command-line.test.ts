import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { place, type Place } from '../kit/place.js'
import { run, type RunContext, prints } from '../kit/run.js'
import { example } from './example.js'

describe('relay', () => {
  it('prints the version', async () => {
    expect(await run(['--version'])).toEqual(prints(`${packageJson.version}\n`))
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

  it('reports as an object that a command of a group is missing', async () => {
    expect(await run(['hook', '--json'])).toEqual({
      code: 2,
      out: '',
      err: '{"v":1,"type":"error","code":"usage","error":"relay hook needs a command. relay hook --help lists them"}\n',
    })
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
    expect(await painted([...flags, 'config', '--reveal', 'x'], where)).toEqual({
      code: 2,
      out: false,
      err: isPainted,
    })
  })

  it('is in nothing a program reads', async () => {
    expect(await painted(['doctor', '--json', '--color', 'always'])).toEqual({
      code: 1,
      out: false,
      err: false,
    })
  })
})

const TARGET = 'octo/demo#1'

/** Commands that end by themselves, each with what it takes to succeed. */
const COMMANDS = [
  ['config'],
  ['token'],
  ['whoami'],
  ['comment', TARGET, 'hello'],
  ['comment', TARGET, 'hello', '--dry-run'],
  ['react', TARGET, 'heart'],
  ['merge', 'octo/demo#2'],
  ['revoke'],
]

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

  it.each(
    COMMANDS.filter(([name]) => !['config', 'revoke'].includes(name ?? '')).filter(
      (argv) => !argv.includes('--dry-run'),
    ),
  )('leaves stdout empty when %s fails, and the error is an object on stderr', async (...argv) => {
    const { code, out, err } = await run([...argv, '--json'], { env: { RELAY_USER: 'ada' } })
    expect({ code, out }).toEqual({ code: 4, out: '' })
    expect(JSON.parse(err)).toEqual({
      v: 1,
      type: 'error',
      code: 'unauthenticated',
      error: expect.stringContaining('relay login'),
    })
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
  let journal: Place
  beforeAll(async () => {
    journal = await example()
  })
  afterAll(() => journal[Symbol.asyncDispose]())

  it.each(READING)('%s warns once of a setting', async (line) => {
    const env = { BASE_URL: '/', RELAY_WEBHOOK_SECRET: 'secret' }
    const { err } = await journal.runWith({ env }, ...line.split(' '))
    expect(err.match(/^warning: .*$/gm)).toEqual([expect.stringContaining('BASE_URL is ignored')])
  })
})
