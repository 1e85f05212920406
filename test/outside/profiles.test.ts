import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { startSandbox } from 'webhook-relay/testing'
import { emptyFolder } from '../kit/folder.js'
import { fill } from '../kit/journal.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { run, fails } from '../kit/run.js'
import { bare, objects, opened } from './example.js'

describe('relay profiles', () => {
  it('lists what each is for, its size, and whether it runs', async () => {
    await using here = await bare()
    const serving = await here.serve('--profile', 'default', '--sandbox', '--sandbox-port', '0')
    await (await here.serve('--profile', 'work')).stop()
    const { code, out, err } = await here.run('profiles')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [header, first, second] = out.trimEnd().split('\n')
    expect(header).toMatch(/^profile {2}for +store +size +relay serve$/)
    expect(first).toMatch(/^default {2}sandbox +file +\d+ KiB +runs at http:\S+, process \d+$/)
    expect(second).toMatch(/^work {5}https:\/\/github\.com {2}file +\d+ KiB +not running$/)
    expect(objects((await here.run('profiles', '--json')).out)).toMatchObject([
      { name: 'default', sandbox: true, running: { pid: serving.pid, url: serving.address } },
      { name: 'work', provider: 'github', store: 'file', running: null },
    ])
  })

  it('makes nothing where there are none', async () => {
    const home = path.join(emptyFolder(), 'home')
    const { code, out, err } = await run(['profiles'], { env: { RELAY_HOME: home } })
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain('relay serve creates one\n')
    expect(existsSync(home)).toBe(false)
  })
})

describe('relay reset', () => {
  it('revokes the tokens first, then removes what relay made and nothing else', async () => {
    await using here = await place()
    const token = await here.useToken()
    const { home } = here
    await fill(here, [opened('a')])
    writeFileSync(path.join(home, 'default', 'mine.txt'), '')
    const { code, out, err } = await here.run('reset', '--yes')
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain('  deliveries  #1 to #1\n  tokens      of ada\n')
    expect(err).toContain('Profile default is removed\n')
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
    expect(code).toBe(8)
    expect(err).toContain('did not revoke it: ')
    expect(err).toContain('The profile stays. Run relay reset again to remove the rest\n')
    expect(existsSync(path.join(folder, 'relay.db'))).toBe(true)
    expect(await here.run('reset', '--yes', '--local', '--json')).toMatchObject({
      code: 0,
      out: '{"v":1,"profile":"default","removed":true,"users":[]}\n',
    })
    expect(existsSync(folder)).toBe(false)
  })

  it('removes nothing without confirmation, or while it is served', async () => {
    await using here = await place({ signedIn: true })
    const before = readdirSync(path.join(here.home, 'default'))
    expect(await here.run('reset')).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'error: Nothing was removed. To remove it without being asked, give --yes\n',
      ),
    })
    expect(readdirSync(path.join(here.home, 'default'))).toEqual(before)
    const serving = await here.serve()
    expect(await here.run('reset', '--yes')).toEqual(
      fails(1, `Profile default is in use by process ${serving.pid} at ${serving.address}. Stop it first`),
    )
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
