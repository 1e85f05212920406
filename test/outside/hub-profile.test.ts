import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { hub } from '../kit/hub.js'
import { run } from '../kit/run.js'
import { commandNames } from './help-pages.js'

/** Commands of workstations that read or change what a profile has, or ask what runs. */
const COMMANDS: readonly (readonly string[])[] = [
  ['log'],
  ['log', '--refused'],
  ['show', 'last'],
  ['wait', 'push', '--timeout', '1s'],
  ['export', 'last'],
  ['replay', 'last'],
  ['trigger', 'push'],
  ['skip', '1'],
  ['routes'],
  ['routes', 'add', '3000'],
  ['routes', 'remove', 'app'],
  ['routes', 'test', 'last'],
  ['source', 'list'],
  ['source', 'remove', 'stripe'],
  ['hook', 'list'],
  ['hook', 'add', 'octo/demo'],
  ['hook', 'test', 'octo/demo'],
  ['catch-up'],
  ['inspect'],
  ['login', '--no-browser'],
  ['revoke'],
  ['setup', '--no-browser'],
  ['token'],
  ['whoami'],
  ['comment', 'octo/demo#1', 'hello'],
  ['react', 'octo/demo#1', 'heart'],
  ['merge', 'octo/demo#1'],
]
/** Commands that a hub's profile can have, that have no profile, or that start something. */
const OTHERS = 'serve hub mcp verify config profiles reset doctor completion help version'.split(' ')

/** States of a hub: it runs, and it does not but has. */
async function states() {
  const server = await hub()
  const { env } = server
  const ask = (...argv: readonly string[]) => run([...argv, '--profile', 'hub'], { env })
  return { server, ask, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

describe('a command for the profile of a hub', () => {
  it('says that it is one, and whether it runs', async () => {
    await using state = await states()
    const said = async () =>
      Promise.all(COMMANDS.map(async (argv) => ({ argv, ...(await state.ask(...argv)) })))
    const expected = (runs: string) =>
      COMMANDS.map((argv) => ({
        argv,
        code: 2,
        out: '',
        err: `error: Profile hub is that of a hub, ${runs}. This command is for those of workstations; relay hub list lists its channels, and relay hub --help its other commands\n`,
      }))
    expect(await said()).toEqual(expected('which runs'))
    await state.server.stop()
    expect(await said()).toEqual(expected('which does not run (relay hub starts it)'))
  })

  it('is one of all there are', async () => {
    const listed = new Set([...COMMANDS.flatMap(([name = '']) => name), ...OTHERS])
    expect([...listed].toSorted()).toEqual((await commandNames()).toSorted())
  })

  it('lists and checks it, and removes it once it does not run', async () => {
    await using state = await states()
    const row = async () =>
      /^hub .*$/m.exec((await state.ask('profiles')).out)?.[0].replace(/\d+ KiB/, 'SIZE')
    const object = async () => JSON.parse((await state.ask('profiles', '--json')).out)
    const checks = async () => {
      const { code, out } = await state.ask('doctor')
      const names = out.split('\n').flatMap((line) => /^(?:ok|-|x) +([a-z -]+?) {2}/.exec(line)?.[1] ?? [])
      return { code, names, relay: /relay {2,}(.*)/.exec(out)?.[1] }
    }
    const names = ['machine', 'settings', 'relay', 'database']
    expect(await row()).toMatch(/^hub +hub +file +SIZE +the hub runs$/)
    expect(await object()).toMatchObject({ name: 'hub', hub: true, running: { pid: null } })
    expect(await checks()).toEqual({ code: 0, names, relay: 'the hub runs' })
    expect(await state.ask('reset', '--yes')).toEqual({
      code: 1,
      out: '',
      err: 'error: Profile hub is in use by its hub, which runs. Stop it first\n',
    })
    await state.server.stop()
    expect(await row()).toMatch(/^hub +hub +file +SIZE +not running$/)
    expect(await object()).toMatchObject({ name: 'hub', hub: true, running: null })
    const relay = 'the hub does not run; start it with relay hub'
    expect(await checks()).toEqual({ code: 0, names, relay })
    expect(await state.ask('reset', '--yes')).toMatchObject({ code: 0 })
    expect((await state.ask('profiles')).err).toContain('There are no profiles')
  })

  it('knows it before its first start, and does not take another one for it', async () => {
    const env = { RELAY_HOME: emptyFolder() }
    expect((await run(['hub', 'invite', '--profile', 'public'], { env })).code).toBe(0)
    expect((await run(['log', '--profile', 'public'], { env })).err).toContain(
      'Profile public is that of a hub, which does not run (relay hub --profile public starts it)',
    )
    expect((await run(['routes'], { env })).err).toContain('There are no routes')
  })
})
