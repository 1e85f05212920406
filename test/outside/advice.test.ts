import { describe, expect, it } from 'vitest'
import { openInspector } from '../kit/inspector.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { fails, type Ran, start } from '../kit/run.js'
import { objects } from './example.js'

/** How a profile is served, and how its other commands name it. */
const PROFILES = {
  default: { serve: [], named: [], name: 'default' },
  'default, named': { serve: ['--profile', 'default'], named: ['--profile', 'default'], name: 'default' },
  work: { serve: ['--profile', 'work'], named: ['--profile', 'work'], name: 'work' },
  sandbox: { serve: ['--sandbox'], named: [], name: 'sandbox' },
  'sandbox, named': { serve: ['--sandbox'], named: ['--profile', 'sandbox'], name: 'sandbox' },
  play: { serve: ['--sandbox', '--profile', 'play'], named: ['--profile', 'play'], name: 'play' },
} as const
type Profile = (typeof PROFILES)[keyof typeof PROFILES]

/** What relay is asked, in which it names a command: while an instance runs, and when none does. */
const SITUATIONS: readonly (readonly string[])[] = [
  ['routes'],
  ['doctor', '--json'],
  ['source', 'add', 'stripe'],
  ['source', 'list'],
  ['source', 'list', '--reveal', 'nothing'],
  ['show', 'refused:9'],
  ['log', '--refused'],
  ['inspect', '--no-browser'],
  ['trigger', 'push'],
  ['trigger', '--source', 'nothing', '--list'],
  ['wait', 'push', '--timeout', '1s'],
  ['whoami'],
  ['comment', 'octo/demo#1', 'hello'],
  ['hook', 'list'],
  ['hook', 'list', 'octo/demo'],
  ['hook', 'add', 'octo/demo'],
  ['catch-up', 'octo/demo'],
]

const VALUED = '(?:profile|port|host|forward|source|reveal|user|events) [^\\s,;"]*[^\\s,;".]'
/** A command line in a sentence: the words of a command, then its options. */
const ADVICE = new RegExp(
  String.raw`\brelay ((?:source|hook) (?:add|list|remove|test)(?: (?:<?\w+/\w+>?|stripe))?|serve|login|setup|config|doctor|log|inspect|show|mcp|whoami|reset|catch-up|profiles)((?: --(?:${VALUED}|[a-z-]+))*)`,
  'g',
)

function adviceIn(texts: readonly string[]): string[][] {
  const lines = texts.flatMap((text) =>
    [...text.matchAll(ADVICE)].map(([line]) => line.replace('<owner/repo>', 'octo/demo')),
  )
  return [...new Set(lines)].map((line) => line.split(' ').slice(1))
}

const machine = (): Promise<Place> => place({ host: 'none' })

/** On free ports, and with a tunnel that nothing answers. */
function serve(here: Place, flags: readonly string[]): Promise<Serving> {
  const ports = flags.includes('--sandbox') ? ['--sandbox-port', '0'] : []
  const env = flags.includes('--tunnel') ? { RELAY_TUNNEL: 'http://127.0.0.1:9' } : {}
  return here.serveWith({ env }, ...flags, ...ports)
}

async function ask(here: Place, { named }: { readonly named: readonly string[] }): Promise<string[]> {
  const said: string[] = []
  for (const argv of SITUATIONS) {
    const { out, err } = await here.runWith({ stdin: 'whsec_c2VjcmV0' }, ...argv, ...named)
    said.push(out, err)
  }
  return said
}

/** Runs what was advised. `serve` has to start the profile; nothing may be refused as wrong usage or settings. */
async function follow(here: Place, advised: readonly string[][], { name }: Profile): Promise<void> {
  for (const [command = '', ...rest] of advised) {
    if (command !== 'serve') continue
    await using serving = await serve(here, rest)
    const running = objects((await here.run('profiles', '--json')).out).flatMap((each) =>
      each['running'] ? [each['name']] : [],
    )
    expect({ command: rest, running }).toEqual({ command: rest, running: [name] })
    const { err } = await here.run('routes', '--profile', name)
    expect(err).not.toContain('No relay is running')
    await serving.stop()
  }
  for (const argv of advised) {
    if (argv[0] === 'serve') continue
    const env = { RELAY_PORT: '0' }
    const end = AbortSignal.timeout(5000)
    // Some lack an argument that relay cannot know, and a sign-in waits for a browser.
    const ran = await here.runWith({ env, stdin: 'whsec_c2VjcmV0', signal: end }, ...argv)
    const isIncomplete = /missing required argument/.test(ran.err)
    const isSetup = /RELAY_CLIENT_ID|not set up|needs no setup|fixed port/.test(ran.err)
    expect({ argv, ...ran, isRefused: ran.code === 2 && !isIncomplete && !isSetup }).toMatchObject({
      argv,
      isRefused: false,
    })
    expect(ran.err).not.toContain('There is no profile')
  }
}

describe.each(Object.entries(PROFILES))('what relay says to run, in the profile %s,', (_, profile) => {
  it('works when it is typed: while it runs, once that has ended, and when it is stopped', async () => {
    await using here = await machine()
    const running = await serve(here, profile.serve)
    const said = await ask(here, profile)
    await running.stop()
    const advised = adviceIn(said)
    expect(advised.map(([command]) => command)).toEqual(expect.arrayContaining(['serve', 'source']))
    await follow(here, advised, profile)
    // Without a name, a command is now about the default profile.
    const { name } = profile
    const named = name === 'default' ? profile.named : ['--profile', name]
    const stopped = adviceIn(await ask(here, { named }))
    expect(stopped.map(([command]) => command)).toContain('serve')
    await follow(here, stopped, profile)
  })
})

it.each([
  [['--sandbox'], '"profile":"sandbox","sandbox":true'],
  [['--sandbox', '--profile', 'play'], '"profile":"play","sandbox":true'],
  [['--profile', 'work'], '"profile":"work","provider":"github"'],
])('the inspector of relay serve %s knows what completes a command', async (flags, expected) => {
  await using here = await machine()
  const inspector = await openInspector(here, await serve(here, flags))
  expect(JSON.stringify(await inspector.json('state'))).toContain(expected)
})

it('a default profile that is not there does not say that a sandbox is stopped which runs', async () => {
  await using here = await machine()
  await using running = await serve(here, PROFILES.sandbox.serve)
  const none = fails(6, 'Profile default has no journal yet. relay serve creates it')
  expect(await here.run('log', '--profile', 'default')).toEqual(none)
  expect(await here.runWith({ env: { RELAY_PROFILE: 'default' } }, 'log')).toEqual(none)
  await running.stop()
})

it('names a default profile that was named, where another runs alone', async () => {
  await using here = await machine()
  await (await serve(here, PROFILES.default.serve)).stop()
  await using _ = await serve(here, PROFILES.sandbox.serve)
  const { err } = await here.run('whoami', '--profile', 'default')
  expect(err).toContain('relay setup --profile default')
})

describe('a port that relay has itself', () => {
  const again = (here: Place, port: number, ...flags: string[]): Promise<Ran> =>
    here.run('serve', '--port', String(port), ...flags)

  it('of the same profile says who serves it, and what to do', async () => {
    await using here = await machine()
    await using running = await serve(here, PROFILES.sandbox.serve)
    const { pid, address, port } = running
    const text = `Profile sandbox is already served by process ${pid} at ${address}. Stop it, or choose another profile with --profile, and other ports with --port and --sandbox-port`
    expect(await again(here, port, '--sandbox')).toEqual(fails(1, text))
    await using other = start(['serve', '--json', '--profile', 'more', '--port', '0'], here)
    await other.url()
  })

  it('of another profile, or of its sandbox, names both', async () => {
    await using here = await machine()
    await using running = await serve(here, PROFILES.play.serve)
    const { pid, port } = running
    const used = `Port ${port} is in use: process ${pid} serves profile play there. Choose another with --port, or 0 for any free port.`
    expect(await again(here, port, '--profile', 'work')).toEqual(fails(1, used))
    const { sandbox } = await running.listening()
    const sandboxPort = new URL(sandbox).port
    const ofSandbox = `Port ${sandboxPort} is in use: process ${pid} serves profile play with its sandbox there. Choose another with --sandbox-port, or 0 for any free port.`
    const second = await again(here, 0, '--sandbox', '--sandbox-port', sandboxPort)
    expect(second).toEqual(fails(1, ofSandbox))
  })
})

describe('an unknown word', () => {
  it.each([
    ['log --tail', '--follow'],
    ['log --tail 3', '--last'],
    ['log --tail=3', '--last'],
    ['log --limit 3', '--last'],
    ['log --watch', '--follow'],
    ['log --lsat 1', '--last'],
    ['log --jsn', '--json'],
    ['replay --count 2', '--last'],
    ['serve --bind 127.0.0.1', '--host'],
    ['trigger push --data x', '--body'],
    ['reset --force', '--yes'],
    ['hook rm octo/demo', 'relay hook remove'],
    ['source ls', 'relay source list'],
    ['source remvoe x', 'relay source remove'],
    ['log --lots', undefined],
    ['log --no', undefined],
    ['replay --tail', '--last'],
  ])('of relay %s is taken for %s', async (line, meant) => {
    await using here = await machine()
    const { code, err } = await here.run(...line.split(' '))
    expect({ code, meant: /\(Did you mean (.*)\?\)/.exec(err)?.[1] }).toEqual({ code: 2, meant })
  })
})
