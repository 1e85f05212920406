import { execSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { adviceIn, commandsOf, follow, machine, PROFILES, serve } from '../kit/advice.js'
import { openInspector } from '../kit/inspector.js'
import type { Place, Serving } from '../kit/place.js'
import { fails, type Ran, start } from '../kit/run.js'

/** Commands that run until they are ended, that print help without their own, or that are about no profile or all. */
const UNASKED = new Set([
  'serve',
  'hub',
  'mcp',
  'login',
  'wait',
  'hook',
  'source',
  'profiles',
  'completion',
  'help',
  'version',
])

/** What relay is asked besides each of its commands without arguments, in which it names a command. */
const SITUATIONS: readonly (readonly string[])[] = [
  ['doctor', '--json'],
  ['source', 'add', 'stripe'],
  ['source', 'add', 'door=none'],
  ['source', 'list'],
  ['source', 'list', '--reveal', 'nothing'],
  ['source', 'remove', 'nothing'],
  ['show', 'refused:9'],
  ['show', 'refused:x'],
  ['show', '99'],
  ['show', 'last'],
  ['verify', 'refused:9'],
  ['log', '--refused'],
  ['log', '--failed'],
  ['inspect', '--no-browser'],
  ['trigger', 'push'],
  ['trigger', 'nonsense'],
  ['trigger', '--source', 'stripe', 'nonsense'],
  ['trigger', '--source', 'nothing', '--list'],
  ['replay', 'last'],
  ['wait', 'push', '--timeout', '1s'],
  ['login', '--device'],
  ['login', '--with-token'],
  ['revoke', '--local'],
  ['comment', 'octo/demo#1', 'hello'],
  ['merge', 'octo/demo#1'],
  ['react', 'octo/demo#1', 'eyes'],
  ['hook', 'list'],
  ['hook', 'list', 'octo/demo'],
  ['hook', 'add', 'octo/demo'],
  ['hook', 'test', 'octo/demo'],
  ['hook', 'remove', 'octo/demo'],
  ['hook', 'remove', 'octo/demo', '--local'],
  ['catch-up', 'octo/demo'],
  ['setup', '--app-hook'],
]

/** Those that wait for a person where nothing refuses them, and change nothing before: they wait beside the others. */
const WAITING: ReadonlySet<string> = new Set(['setup', 'setup --app-hook', 'login --device'])

/** What relay says when it is asked all that; the commands of it are advice. */
async function ask(
  here: Place,
  commands: readonly string[],
  named: readonly string[],
): Promise<readonly string[]> {
  const bare = commands.filter((command) => !UNASKED.has(command)).map((command) => [command])
  const all = [...bare, ...SITUATIONS]
  const isWaiting = (argv: readonly string[]): boolean => WAITING.has(argv.join(' '))
  const answer = async (argv: readonly string[]): Promise<readonly string[]> => {
    const signal = AbortSignal.timeout(5000)
    const { out, err } = await here.runWith({ stdin: 'whsec_c2VjcmV0', signal }, ...argv, ...named)
    return [out, err]
  }
  const waiting = Promise.all(all.filter(isWaiting).map(answer))
  const said: string[] = []
  for (const argv of all) if (!isWaiting(argv)) said.push(...(await answer(argv)))
  return [...said, ...(await waiting).flat()]
}

/** What the pages of a relay say: after each outcome of a sign-in, and where no browser is known. */
async function pagesOf({ address }: Serving): Promise<readonly string[]> {
  const reasons = [
    'invalid_state',
    'access_denied',
    'provider_unavailable',
    'exchange_failed',
    'storage_failed',
    'x',
  ]
  const paths = [
    '/',
    '/?auth=success',
    ...reasons.map((reason) => `/?auth=error&reason=${reason}`),
    '/inspect/',
    '/inspect/api/state',
  ]
  return Promise.all(
    paths.map(async (each) => {
      const answer = await fetch(address + each, { redirect: 'manual' })
      return (await answer.text()).replaceAll(/\s+/g, ' ')
    }),
  )
}

describe.each(Object.entries(PROFILES))('what relay says to run, in the profile %s,', (_, profile) => {
  it('works when it is typed: while it runs, once that has ended, and when it is stopped', async () => {
    await using here = await machine()
    const commands = await commandsOf(here)
    const running = await serve(here, profile.serve)
    const said = await ask(here, commands, profile.named)
    const shown = await pagesOf(running)
    await fetch(`${running.address}/webhook`, {
      method: 'POST',
      headers: { 'X-GitHub-Event': 'push', 'Content-Type': 'application/json' },
      body: '{}',
    })
    const { err } = await running.stop()
    const pages = adviceIn(shown, commands)
    expect(pages.map(([command]) => command)).toEqual(
      expect.arrayContaining(['login', 'doctor', 'log', 'show', 'inspect']),
    )
    const logged = adviceIn([err], commands)
    expect(logged.map(([command]) => command)).toContain('show')
    const advised = adviceIn([...said, ...shown, err], commands)
    expect(advised.map(([command]) => command)).toEqual(
      expect.arrayContaining(['serve', 'source', 'trigger']),
    )
    await follow(here, advised, profile)
    // Without a name, a command is now about the default profile.
    const { name } = profile
    const named = name === 'default' ? profile.named : ['--profile', name]
    const stopped = adviceIn(await ask(here, commands, named), commands)
    expect(stopped.map(([command]) => command)).toContain('serve')
    await follow(here, stopped, profile)
  }, 120_000)
})

it('what relay says to run about a relay that stands still continues it', async () => {
  await using here = await machine()
  // A process of its own, which can be stopped.
  const serving = await serve(here, [], { built: true })
  process.kill(serving.child.pid ?? 0, 'SIGSTOP')
  const { err } = await here.run('inspect', '--no-browser')
  const [command = ''] = /kill -CONT \d+/.exec(err) ?? []
  execSync(command)
  expect(await here.run('inspect', '--no-browser')).toMatchObject({ code: 0 })
  await serving.stop()
})

describe('a port that a relay of another profile has', () => {
  it.each([
    [['--profile', 'work'], 'relay serve --profile work --port 0'],
    [['--sandbox', '--profile', 'play'], 'relay serve --sandbox --profile play --port 0'],
  ])('is no port of relay serve %s, as relay says it', async (flags, expected) => {
    await using here = await machine()
    await (await serve(here, flags)).stop()
    const { port } = await serve(here, [])
    const env = { RELAY_PORT: String(port) }
    const name = flags.at(-1) ?? ''
    const { err } = await here.runWith({ env }, 'inspect', '--profile', name)
    const [[, ...advised] = []] = adviceIn([err], ['serve'])
    expect(['relay', 'serve', ...advised].toSorted()).toEqual(expected.split(' ').toSorted())
    const again = here.startWith({ env }, 'serve', '--json', ...advised)
    expect(await again.url()).not.toContain(`:${port}`)
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
