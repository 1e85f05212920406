import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { diagnose } from '../../../../src/old/commands/doctor/diagnose.js'
import type { Flags } from '../../../../src/old/settings/read.js'
import { publishInstance } from '../../../../src/instance/running.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'
import { scriptedServer } from '../../../helpers/scripted-server.js'
import { codeHost, finding, findings, gitea, profile, signIn, used } from './rig.js'

describe('the check of', () => {
  it('node', async () => {
    const { context } = testContext({ env: { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'sandbox' } })
    const [node] = await diagnose(context, {}, { nodeVersion: '20.17.9' })
    expect(node).toEqual({
      check: 'node',
      state: 'fail',
      text: 'Node 20.17.9 is older than 20.18',
      fix: 'install Node 20.18 or later: https://nodejs.org',
    })
  })

  it('settings: what cannot be read, and what is not read', async () => {
    const { context } = testContext({ env: { RELAY_PORT: 'x' } })
    expect((await findings(context)).map(({ check, state, text }) => [check, state, text])).toEqual([
      ['node', 'ok', 'Node 20.18.0'],
      ['settings', 'fail', 'RELAY_PORT: must be a whole number from 0 to 65535'],
    ])
    expect(await finding('settings', profile({ RELAY_PROVDER: 'x', RELAY_FOREIGN_THING: 'y' }))).toEqual([
      'fail',
      'RELAY_PROVDER is not read',
      'set RELAY_PROVIDER instead',
    ])
    expect(await finding('settings', profile({ RELAY_SECRET: 'x' }))).toEqual([
      'fail',
      'RELAY_SECRET is not read',
      'set RELAY_WEBHOOK_SECRET instead',
    ])
  })

  it('folder: open to others', async () => {
    const given = await profile()
    chmodSync(given.folder, 0o755)
    expect(await finding('folder', Promise.resolve(given))).toEqual([
      'fail',
      `other users can read or write ${given.folder}`,
      `chmod 700 ${given.folder}`,
    ])
    const secret = path.join(given.folder, 'webhook-secret')
    writeFileSync(secret, 'x', { mode: 0o644 })
    chmodSync(given.folder, 0o700)
    expect(await finding('folder', Promise.resolve(given))).toEqual([
      'fail',
      `other users can read or write ${secret}`,
      `chmod 600 ${secret}`,
    ])
  })

  it('database: damaged', async () => {
    const home = emptyFolder()
    const folder = path.join(home, 'default')
    mkdirSync(folder, { mode: 0o700 })
    writeFileSync(path.join(folder, 'relay.db'), 'no database'.repeat(1000))
    const { context } = testContext({ env: { RELAY_HOME: home, RELAY_PROVIDER: 'sandbox' } })
    const found = await findings(context)
    expect(found.find(({ check }) => check === 'database')).toMatchObject({
      state: 'fail',
      fix: `ls -ld ${folder}; df -h ${folder}`,
    })
    expect(found.find(({ check }) => check === 'token')?.state).toBe('skip')
  })

  it('instance: another program at its address', async () => {
    const squatter = await codeHost(() => ({ body: { status: 'ok' } }))
    const row = {
      v: 1 as const,
      pid: process.pid,
      url: squatter.url,
      provider: 'gitea',
      providerUrl: squatter.url,
    }
    const rest = { publicUrl: squatter.url, key: 'k', startedAt: new Date().toISOString() }
    const entry = {
      profile: 'default',
      store: 'file',
      sandbox: false,
      secretPrint: '',
      madeSecret: null,
    } as const
    const given = await profile()
    publishInstance(path.dirname(given.folder), { ...row, ...rest, ...entry })
    expect(await finding('instance', Promise.resolve(given))).toEqual([
      'fail',
      `process ${process.pid} does not prove itself at ${squatter.url}`,
      'relay serve',
    ])
  })

  it('port: free, used, not ours to take', async () => {
    const port = await used()
    expect(await finding('port', profile(), { port: '0' })).toEqual(['skip', 'any free port'])
    expect(await finding('port', profile(), { port: String(port) })).toEqual([
      'fail',
      `${port} is in use by another program`,
      // The port after it, unless another program has that too.
      expect.stringMatching(/^relay serve --port \d+$/),
    ])
    expect(await finding('port', profile(), { port: '1', host: '192.0.2.1' })).toEqual([
      'fail',
      'relay cannot listen on 192.0.2.1 (EADDRNOTAVAIL)',
      'relay serve --host 127.0.0.1',
    ])
  })

  it.each([
    [125, "125 s behind the code host's"],
    [-125, "125 s ahead of the code host's"],
  ])('clock: a code host %i s ahead', async (seconds, text) => {
    const host = await codeHost((request) => gitea(request, seconds * 1000))
    const [state, said] = (await finding('clock', profile({ RELAY_PROVIDER_URL: host.url }))) ?? []
    expect([state, said?.replace(/^12[456]/, '125')]).toEqual(['fail', text])
  })

  it('code host: one that is not there, and one that never answers', async () => {
    const closed = await scriptedServer(() => 'silence')
    await closed[Symbol.asyncDispose]()
    const gone = { RELAY_PROVIDER_URL: closed.url }
    expect(await finding('code host', profile(gone))).toEqual([
      'fail',
      `${closed.url} cannot be reached (connection refused)`,
      `run curl -I ${closed.url}, and set HTTPS_PROXY if there is a proxy`,
    ])
    expect(await finding('clock', profile(gone))).toEqual(['skip', 'the code host did not send its time'])
    const silent = await codeHost(() => 'silence')
    const began = Date.now()
    expect(await finding('code host', profile({ RELAY_PROVIDER_URL: silent.url }))).toEqual([
      'fail',
      `${silent.url} cannot be reached (no answer in time)`,
      `run curl -I ${silent.url}, and set HTTPS_PROXY if there is a proxy`,
    ])
    expect(Date.now() - began).toBeLessThan(8000)
  })

  it.each([['short'], ['a'.repeat(64)]])('webhook secret: %s', async (secret) => {
    expect(await finding('webhook secret', profile({ RELAY_WEBHOOK_SECRET: secret }))).toEqual([
      'fail',
      'too easy to guess: fewer than 20 characters, or too few different ones',
      'set RELAY_WEBHOOK_SECRET=$(openssl rand -hex 32) here and at the code host',
    ])
  })

  it('token: of another code host, ended, and ended but renewable', async () => {
    const other = { origin: 'https://other.example' }
    const { context, host } = await profile({}, (store) => signIn(store, other))
    expect(await finding('token', Promise.resolve({ context }))).toEqual([
      'fail',
      `the token of ada is from https://other.example, not ${host.url}`,
      'relay login --user ada',
    ])
    const ended = { expiresAt: Date.now() - 1 }
    expect(
      await finding(
        'token',
        profile({}, (store) => signIn(store, ended)),
      ),
    ).toEqual(['fail', 'ada is not signed in', 'relay login --user ada'])
    const renewable = { ...ended, refreshToken: 'canary-refresh' }
    expect(
      await finding(
        'token',
        profile({}, (store) => signIn(store, renewable)),
      ),
    ).toEqual(['ok', 'the token of ada has expired; its next use renews it'])
  })

  it.each<[string, Flags, string[]]>([
    [
      'a public address that is not encrypted',
      { publicUrl: 'http://relay.example' },
      [
        'http://relay.example is not encrypted: others on the network can read codes and tokens',
        'set RELAY_PUBLIC_URL=https://relay.example',
      ],
    ],
    [
      'two names for this machine',
      { baseUrl: 'http://localhost:3000', port: '8787' },
      [
        'relay is at 127.0.0.1 and the application at localhost: a sign-in that starts at one cannot end at the other',
        'set RELAY_PUBLIC_URL=http://localhost:8787',
      ],
    ],
    [
      'a port that nothing listens on',
      { publicUrl: 'http://127.0.0.1:9000', port: '8787' },
      [
        'the public address has port 9000, but relay listens on 8787',
        'set RELAY_PUBLIC_URL=http://127.0.0.1:8787',
      ],
    ],
  ])('addresses: %s', async (_, flags, said) => {
    expect(await finding('addresses', profile(), flags)).toEqual(['fail', ...said])
  })
})
