import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { saveProfile } from '../../../src/instance/saved-profile.js'
import { emptyFolder } from '../../helpers/context.js'
import { fill, opened } from '../journal-rig.js'
import { shell, startAlone, startServed } from '../rig.js'

const GITHUB = {
  store: 'file',
  provider: 'github',
  providerUrl: 'https://github.com',
  sandbox: false,
} as const

describe('relay profiles', () => {
  it('lists what each is for, its size, and whether it runs', async () => {
    await using served = await startServed()
    const { home } = served.shell
    saveProfile(path.join(home, 'work'), { ...GITHUB, store: 'keychain' })
    const { code, out, err } = await served.shell.run(['profiles'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [header, first, second] = out.trimEnd().split('\n')
    expect(header).toMatch(/^profile {2}for +store +size +relay serve$/)
    expect(first).toMatch(/^default {2}sandbox +file +\d+ KiB +runs at http:\S+, process \d+$/)
    expect(second).toBe('work     https://github.com  keychain  1 KiB    not running')
    const objects = (await served.shell.run(['profiles', '--json'])).out.trim().split('\n')
    expect(objects.map((text): unknown => JSON.parse(text))).toMatchObject([
      { name: 'default', sandbox: true, running: { pid: process.pid, url: served.serving.url } },
      { name: 'work', provider: 'github', store: 'keychain', running: null },
    ])
  })

  it('makes nothing where there are none', async () => {
    const home = path.join(emptyFolder(), 'home')
    const { code, out, err } = await shell({}, home).run(['profiles'])
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain('relay serve creates one\n')
    expect(existsSync(home)).toBe(false)
  })
})

describe('relay reset', () => {
  it('revokes the tokens first, then removes what relay made and nothing else', async () => {
    await using alone = await startAlone()
    const { home } = alone.shell
    await fill(alone.shell, async (journal) => void (await journal.append(opened('a'))))
    writeFileSync(path.join(home, 'default', 'mine.txt'), '')
    const { code, out, err } = await alone.shell.run(['reset', '--yes'])
    expect({ code, out }).toEqual({ code: 0, out: '' })
    expect(err).toContain('  deliveries  #1 to #1\n  tokens      of ada\n')
    expect(err).toContain('Profile default is removed\n')
    expect(readdirSync(path.join(home, 'default'))).toEqual(['mine.txt'])
    const headers = { Authorization: `Bearer ${alone.grant.access_token}` }
    expect((await fetch(`${alone.sandbox.url}/api/v3/user`, { headers })).status).toBe(401)
    expect(await alone.shell.run(['reset', '--yes'])).toMatchObject({ code: 6, out: '' })
  })

  it('keeps the profile when a token cannot be revoked, exit 8, unless --local', async () => {
    await using alone = await startAlone()
    const folder = path.join(alone.shell.home, 'default')
    await alone.sandbox[Symbol.asyncDispose]()
    const { code, err } = await alone.shell.run(['reset', '--yes'])
    expect(code).toBe(8)
    expect(err).toContain('did not revoke it: ')
    expect(err).toContain('The profile stays. Run relay reset again to remove the rest\n')
    expect(existsSync(path.join(folder, 'relay.db'))).toBe(true)
    expect(await alone.shell.run(['reset', '--yes', '--local', '--json'])).toMatchObject({
      code: 0,
      out: '{"v":1,"profile":"default","removed":true,"users":[]}\n',
    })
    expect(existsSync(folder)).toBe(false)
  })

  it('removes nothing without confirmation, or while it is served', async () => {
    await using alone = await startAlone()
    const before = readdirSync(path.join(alone.shell.home, 'default'))
    expect(await alone.shell.run(['reset'])).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'error: Nothing was removed. To remove it without being asked, give --yes\n',
      ),
    })
    expect(readdirSync(path.join(alone.shell.home, 'default'))).toEqual(before)
    await using served = await startServed()
    expect(await served.shell.run(['reset', '--yes'])).toEqual({
      code: 1,
      out: '',
      err: `error: Profile default is in use by process ${process.pid} at ${served.serving.url}. Stop it first\n`,
    })
  })

  it.each([
    ['y\n', 0],
    ['no\n', 130],
    ['', 130],
  ])('asks on a terminal: %j', async (answer, code) => {
    await using alone = await startAlone()
    const stdin = Object.assign((await import('node:stream')).Readable.from([answer]), { isTTY: true })
    let err = ''
    const stderr = { isTTY: true, write: (text: string) => void (err += text) }
    expect(await alone.shell.run(['reset', '--local'], { stdin, stderr })).toMatchObject({ code })
    expect(err).toContain('Remove it? [y/N] ')
    expect(existsSync(path.join(alone.shell.home, 'default'))).toBe(code !== 0)
  })
})
