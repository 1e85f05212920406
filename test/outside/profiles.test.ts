import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { startSandbox } from 'webhook-relay/testing'
import { fill } from '../kit/journal.js'
import { signIn } from '../kit/pages.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { fails } from '../kit/run.js'
import { bare, objects, opened } from './example.js'
import { json, notes } from './fixture.js'

describe('relay profiles', () => {
  it('lists what each is for, its size, and whether it runs', async () => {
    await using here = await bare()
    const serving = await here.serve('--profile', 'default', '--sandbox', '--sandbox-port', '0')
    await (await here.serve('--profile', 'work')).stop()
    const { code, out, err } = await here.run('profiles')
    expect([code, err, out.replaceAll(/ {2,}/g, '  ').replaceAll(/\d+ KiB/g, 'SIZE')]).toEqual([
      0,
      '',
      'profile  for  store  size  relay serve\n' +
        `default  sandbox  file  SIZE  runs at ${serving.address}, process ${serving.pid}\n` +
        'work  https://github.com  file  SIZE  not running\n',
    ])
    expect(objects((await here.run('profiles', '--json')).out)).toMatchObject([
      { name: 'default', sandbox: true, running: { pid: serving.pid, url: serving.address } },
      { name: 'work', provider: 'github', store: 'file', running: null },
    ])
  })
})

describe('relay reset', () => {
  it('revokes the tokens first, then removes what relay made and nothing else', async () => {
    await using here = await place()
    const token = await here.useToken()
    const { home } = here
    await fill(here, [opened('a')])
    writeFileSync(path.join(home, 'default', 'mine.txt'), '')
    const removed = / {2}deliveries {2}#1 to #1\n {2}tokens {6}of ada\n[^]*Profile default is removed\n/
    expect(await here.run('reset', '--yes')).toEqual(notes(expect.stringMatching(removed)))
    expect(readdirSync(path.join(home, 'default'))).toEqual(['mine.txt'])
    const headers = { Authorization: `Bearer ${token}` }
    expect((await fetch(`${here.sandbox.url}/api/v3/user`, { headers })).status).toBe(401)
    expect(await here.run('reset', '--yes')).toMatchObject({ code: 6, out: '' })
  })

  it('keeps the profile when a token cannot be revoked, exit 8, unless --local', async () => {
    await using sandbox = await startSandbox({ client: CLIENT })
    await using here = await bare({ env: hostVariables('sandbox', sandbox.url, CLIENT) })
    await here.useToken(await sandbox.token('repo'))
    const folder = path.join(here.home, 'default')
    await sandbox[Symbol.asyncDispose]()
    const { code, err } = await here.run('reset', '--yes')
    const stays = 'The profile stays. Run relay reset again to remove the rest\n'
    expect([code, err]).toEqual([8, expect.stringMatching(`did not revoke it: [^]*${stays}`)])
    expect(existsSync(path.join(folder, 'relay.db'))).toBe(true)
    const removed = { v: 1, profile: 'default', removed: true, users: [] }
    expect(await json(here.run('reset', '--yes', '--local', '--json'))).toEqual(removed)
    expect(existsSync(folder)).toBe(false)
  })

  it('removes nothing without confirmation, or while it is served', async () => {
    await using here = await place({ signedIn: true })
    const before = readdirSync(path.join(here.home, 'default'))
    const { code, err } = await here.run('reset')
    const nothing = 'error: Nothing was removed. To remove it without being asked, give --yes\n'
    expect([code, err]).toEqual([2, expect.stringContaining(nothing)])
    expect(readdirSync(path.join(here.home, 'default'))).toEqual(before)
    const serving = await here.serve()
    const used = `Profile default is in use by process ${serving.pid} at ${serving.address}. Stop it first`
    expect(await here.run('reset', '--yes')).toEqual(fails(1, used))
  })

  it.each([
    ['y\n', 0],
    ['no\n', 130],
    ['', 130],
  ])('asks on a terminal: %j', async (answer, code) => {
    await using here = await place({ signedIn: true })
    const over = { stdin: answer, terminal: { streams: ['stdin', 'stderr'] } } as const
    const { err, ...ran } = await here.runWith(over, 'reset', '--local')
    expect(ran).toEqual({ code, out: '' })
    expect(err).toContain('Remove it? [y/N] ')
    expect(existsSync(path.join(here.home, 'default'))).toBe(code !== 0)
  })
})

const SANDBOX = ['--sandbox', '--sandbox-port', '0']

describe('relay serve --store memory, in another terminal', () => {
  it('takes deliveries, and every command that needs its data says why it cannot', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve(...SANDBOX, '--store', 'memory')
    const url = program.address
    const found = `Using profile sandbox, which runs at ${url}\n`
    expect(await here.run('trigger', 'push')).toMatchObject({ code: 0, err: `${found}1 sent\n` })
    await program.object({ event: 'push' })
    const only = (what: string): string =>
      `${found}error: Process ${program.pid} serves profile sandbox with --store memory, so no other process can read ${what}. Start it with --store file\n`
    const refuses = async (line: string, what: string): Promise<void> =>
      expect(await here.run(...line.split(' '))).toEqual({ code: 2, out: '', err: only(what) })
    for (const line of ['log', 'wait push', 'replay last', 'show 1']) await refuses(line, 'its journal')
    for (const line of ['login', 'whoami', 'comment octo/demo#1 hello', 'revoke'])
      await refuses(line, 'its tokens')
    await program.stop()
    expect(readdirSync(here.home)).toEqual(['.running'])
    expect(readdirSync(path.join(here.home, '.running'))).toEqual([])
  })
})

describe('a forgotten profile', () => {
  it('is that of the only relay that runs; of several, one must be named', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve(...SANDBOX)
    const url = program.address
    const found = `Using profile sandbox, which runs at ${url}\n`
    expect(await here.run('trigger', 'issues')).toMatchObject({ code: 0, err: `${found}1 sent\n` })
    const { code, out, err } = await here.run('log', '--json', '--event', 'issues')
    expect({ code, err, repo: JSON.parse(out).repo }).toEqual({ code: 0, err: found, repo: 'octo/demo' })
    const wait = await here.run('wait', 'issues', '--since', '1h', '--timeout', '20s')
    expect(wait).toMatchObject({ code: 0, err: found })

    const second = await here.serveWith({ built: true }, ...SANDBOX, '--store', 'memory')
    const twice = expect.stringContaining('Stop all but one, or give each its own --profile')
    expect(await here.run('trigger', 'issues')).toMatchObject({ code: 2, err: twice })
    await second.stop()

    const other = await here.serve()
    const both = [
      `default (process ${other.pid} at ${other.address})`,
      `sandbox (process ${program.pid} at ${url})`,
    ]
    const several = `Several relays are running: ${both.join(', ')}. Name one with --profile`
    expect(await here.run('log')).toEqual(fails(2, several))
    const sent = { code: 0, err: '1 sent\n' }
    expect(await here.run('trigger', 'issues', '--profile', 'default')).toMatchObject(sent)
  })
})

describe('a stopped sandbox with a name of its own', () => {
  it('is named with the command that starts it, and never mistaken for GitHub', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve(...SANDBOX, '--profile', 'play')
    await signIn(program.address, 'ada')
    await program.stop()
    const start = 'relay serve --sandbox --profile play'
    const stopped = fails(1, `The sandbox is not running. Start it with ${start}`)
    for (const argv of [['login'], ['whoami'], ['comment', 'octo/demo#1', 'hello']]) {
      expect(await here.run(...argv)).toEqual(stopped)
      expect(await here.run(...argv, '--profile', 'play')).toEqual(stopped)
    }
    expect((await here.run('trigger', 'push', '--profile', 'play')).err).toContain(start)
    expect((await here.run('wait', 'push', '--profile', 'play')).err).toContain(start)
    expect((await here.run('log', '--refused', '--profile', 'play')).err).toContain(start)
    expect((await here.run('doctor', '--profile', 'play')).out).toContain(`start it with ${start}`)
    expect((await here.run('routes', '--profile', 'play')).err).toContain(
      'relay serve --sandbox --forward 3000 --profile play,',
    )
    const own = `Profile play belongs to a sandbox. Start it with ${start}, or choose another profile with --profile`
    expect(await here.run('serve', '--profile', 'play', '--port', '0')).toEqual(fails(2, own))
    const none =
      'There is no profile plya (did you mean play?). There are: play. relay serve --profile plya creates it'
    expect(await here.run('log', '--profile', 'plya')).toEqual(fails(2, none))
    expect(readdirSync(here.home).toSorted()).toEqual(['.running', 'play'])
    // Without its name, the default profile's command would start the profile sandbox.
    await (await here.serve(...SANDBOX, '--profile', 'default')).stop()
    const stoppedDefault = `The sandbox is not running. Start it with relay serve --sandbox --profile default`
    expect(await here.run('whoami', '--profile', 'default')).toEqual(fails(1, stoppedDefault))
  })
})
