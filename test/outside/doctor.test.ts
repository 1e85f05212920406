import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { fill } from '../kit/journal.js'
import { startSession } from '../kit/keyring.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { bare } from './example.js'

interface Check {
  readonly check: string
  readonly state: string
  readonly text: string
  readonly fix?: string
}

/** What doctor finds, by the names of its checks. */
async function diagnosis(
  here: Place,
  env: Record<string, string> = {},
  ...flags: string[]
): Promise<ReadonlyMap<string, Check>> {
  const { out } = await here.runWith({ env }, 'doctor', '--json', ...flags)
  const { checks }: { checks: Check[] } = JSON.parse(out)
  return new Map(checks.map((check) => [check.check, check]))
}

/** One of them, with what it says and what to do. */
async function check(name: string, here: Place, env: Record<string, string> = {}, ...flags: string[]) {
  const { state, text, fix } = (await diagnosis(here, env, ...flags)).get(name) ?? {}
  return [state, text, ...(fix === undefined ? [] : [fix])]
}

const NAMES = ['machine', 'settings', 'relay', 'database', 'code host', 'sign-in', 'hook', 'tunnel']

describe('relay doctor', () => {
  it('has eight checks, and finds nothing wrong where nothing is', async () => {
    await using here = await place({ signedIn: true, webhook: true })
    const relay = await here.serve()
    await relay.deliver()
    const found = await diagnosis(here)
    expect([...found.keys()]).toEqual(NAMES)
    expect([...found.values()].filter(({ state }) => state === 'fail')).toEqual([])
    expect(found.get('relay')?.text).toContain(`at ${relay.address} has proved itself`)
    expect(found.get('settings')?.text).toContain('they agree with process')
    expect(found.get('database')?.text).toMatch(/^can write and read; schema version \d+; not damaged$/)
  })

  it('says what cannot be read of the settings', async () => {
    await using here = await bare({ env: { RELAY_PORT: 'x' } })
    expect(await here.run('doctor')).toEqual({
      code: 1,
      out: 'x   settings  RELAY_PORT: must be a whole number from 0 to 65535\n              fix: relay config --help\n',
      err: 'error: 1 of 1 checks failed\n',
    })
  })

  const WEAK = 'the webhook secret is too easy to guess: fewer than 20 characters, or too few different ones'
  const MAKE_ONE = 'set RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32) here and at the code host'

  it.each<[Record<string, string>, string, string]>([
    [{ RELAY_PROVDER: 'x', RELAY_FOREIGN: 'y' }, 'RELAY_PROVDER is not read', 'set RELAY_PROVIDER instead'],
    [{ RELAY_SECRET: 'x' }, 'RELAY_SECRET is not read', 'set RELAY_WEBHOOK_SECRET instead'],
    [{ RELAY_WEBHOOK_SECRET: 'short' }, WEAK, MAKE_ONE],
    [{ RELAY_WEBHOOK_SECRET: 'a'.repeat(64) }, WEAK, MAKE_ONE],
  ])('settings: %j', async (env, text, fix) => {
    await using here = await bare()
    expect(await check('settings', here, env)).toEqual(['fail', text, fix])
  })

  it('compares this shell with the running relay, and shows no secret', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    const [state, text = '', fix] = await check('settings', here, { RELAY_STORE: 'keychain' })
    expect([state, text.replace(/\d+/, 'PID'), fix]).toEqual([
      'fail',
      'RELAY_STORE is keychain, but process PID serves profile default with --store file',
      'unset the variable, or name another profile with --profile',
    ])
    const other = { RELAY_WEBHOOK_SECRET: 'another-canary-secret-9' }
    const [, differs = ''] = await check('settings', here, other)
    expect(differs.replace(/\d+/, 'PID')).toBe(
      'RELAY_WEBHOOK_SECRET has another webhook secret than process PID',
    )
    expect(relay.err).not.toContain('canary')
  })

  it('finds a folder that others can read, before anything corrects that', async () => {
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const folder = path.join(here.home, 'default')
    chmodSync(folder, 0o755)
    expect(await check('machine', here)).toEqual([
      'fail',
      `other users can read or write ${folder}`,
      `chmod 700 ${folder}`,
    ])
  })

  it('finds a damaged database', async () => {
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const folder = path.join(here.home, 'default')
    writeFileSync(path.join(folder, 'relay.db'), 'no database'.repeat(1000))
    const found = await diagnosis(here)
    expect(found.get('database')).toMatchObject({ state: 'fail', fix: `ls -ld ${folder}; df -h ${folder}` })
    expect(found.get('sign-in')?.state).toBe('skip')
  })

  it('says whether relay could listen, and who does', async () => {
    await using here = await bare()
    const free = await closedPort()
    expect(await check('relay', here, {}, '--profile', 'default')).toEqual([
      'skip',
      expect.stringMatching(/^not running; start it with relay serve/),
    ])
    expect(await check('relay', here, { RELAY_PORT: `${free}` })).toEqual([
      'skip',
      `not running; start it with relay serve. Port ${free} is free`,
    ])
    await using squatter = await receiver()
    const { port } = new URL(squatter.url)
    expect(await check('relay', here, { RELAY_PORT: port })).toEqual([
      'fail',
      `not running, and port ${port} is in use by another program`,
      expect.stringMatching(/^relay serve --port \d+$/),
    ])
    expect(await check('relay', here, { RELAY_PORT: '1', RELAY_HOST: '192.0.2.1' })).toEqual([
      'fail',
      'not running, and relay cannot listen on 192.0.2.1 (EADDRNOTAVAIL)',
      'relay serve --host 127.0.0.1',
    ])
    await here.serve()
    const relay = await here.serve('--profile', 'other')
    const own = new URL(relay.address).port
    await fill(here, [{ id: 'a' }], 'third')
    const [, text = ''] = await check('relay', here, { RELAY_PORT: own, RELAY_PROFILE: 'third' })
    expect(text.replace(/process \d+/, 'process PID')).toBe(
      `not running, and port ${own} is in use by relay itself: process PID serves profile other there`,
    )
  })

  it('says how the tunnel is: that it works, that messages are lost, that it is down', async () => {
    await using server = await smee()
    await using here = await place({ host: 'none' })
    const relay = await here.serve('--tunnel', server.channel)
    await relay.object({ type: 'tunnel', roundTrip: 'ok' })
    await expect
      .poll(() => check('tunnel', here))
      .toEqual(['ok', expect.stringMatching(/^connected to http:\S+ since [-\d]+ [:\d]+, and works$/)])
    await server[Symbol.asyncDispose]()
    await relay.object({ type: 'tunnel', state: 'waiting' })
    await expect
      .poll(() => check('tunnel', here))
      .toEqual([
        'fail',
        expect.stringMatching(/^down since [-\d]+ [:\d]+: .*; next is attempt \d+; payload URL http:/),
        'check the network, and HTTPS_PROXY if there is a proxy; relay retries by itself',
      ])
  })
})

describeWith('keyring', 'relay doctor, with a keychain', () => {
  it('says that it is unlocked', async () => {
    await using here = await place({ host: 'none', store: 'keychain' })
    await (await here.serve()).stop()
    expect(await check('database', here)).toEqual([
      'ok',
      expect.stringMatching(/; not damaged; the keychain is unlocked$/),
    ])
  })

  it('says that there is none, and what to do', async () => {
    await using session = await startSession()
    await using here = await bare()
    await fill(here, [{ id: 'a' }])
    const { DBUS_SESSION_BUS_ADDRESS = '' } = session.env
    expect(await check('database', here, { DBUS_SESSION_BUS_ADDRESS, RELAY_STORE: 'keychain' })).toEqual([
      'fail',
      expect.stringContaining('--store file'),
      'unlock the keychain, or choose --store file',
    ])
  })
})
