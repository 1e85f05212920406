import { readdirSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { signIn } from '../kit/pages.js'
import { place } from '../kit/place.js'
import { fails } from '../kit/run.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']

describe('relay serve --store memory, in another terminal', () => {
  it('takes deliveries, and every command that needs its data says why it cannot', async () => {
    await using here = await place({ host: 'none' })
    const program = await here.serve(...SANDBOX, '--store', 'memory')
    const url = program.address
    const found = `Using profile sandbox, which runs at ${url}\n`
    const trigger = await here.run('trigger', 'push')
    expect({ code: trigger.code, err: trigger.err }).toEqual({ code: 0, err: `${found}1 sent\n` })
    await program.object({ event: 'push' })
    const only = (what: string): string =>
      `${found}error: Process ${program.pid} serves profile sandbox with --store memory, so no other process can read ${what}. Start it with --store file\n`
    for (const argv of [['log'], ['wait', 'push'], ['replay', 'last'], ['show', '1']])
      expect(await here.run(...argv)).toEqual({ code: 2, out: '', err: only('its journal') })
    for (const argv of [['login'], ['whoami'], ['comment', 'octo/demo#1', 'hello'], ['revoke']])
      expect(await here.run(...argv)).toEqual({ code: 2, out: '', err: only('its tokens') })
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
    expect(await here.run('wait', 'issues', '--since', '1h', '--timeout', '20s')).toMatchObject({
      code: 0,
      err: found,
    })

    const other = await here.serve()
    const second = other.address
    const named = await here.run('log')
    expect({ code: named.code, out: named.out }).toEqual({ code: 2, out: '' })
    expect(named.err).toContain('error: Several relays are running: ')
    expect(named.err).toContain(`sandbox (process ${program.pid} at ${url})`)
    expect(named.err).toContain(`default (process ${other.pid} at ${second})`)
    expect(named.err).toContain('Name one with --profile\n')
    expect(await here.run('trigger', 'issues', '--profile', 'default')).toMatchObject({
      code: 0,
      err: '1 sent\n',
    })
  })
})

describe('a stopped sandbox with a name of its own', () => {
  it('is named with the command that starts it, and never mistaken for GitHub', async () => {
    await using here = await place({ host: 'none' })
    const { home } = here
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
    expect(await here.run('serve', '--profile', 'play', '--port', '0')).toEqual(
      fails(
        2,
        `Profile play belongs to a sandbox. Start it with ${start}, or choose another profile with --profile`,
      ),
    )
    expect(await here.run('log', '--profile', 'plya')).toEqual(
      fails(
        2,
        'There is no profile plya (did you mean play?). There are: play. relay serve --profile plya creates it',
      ),
    )
    expect(readdirSync(home).toSorted()).toEqual(['.running', 'play'])
  })
})
