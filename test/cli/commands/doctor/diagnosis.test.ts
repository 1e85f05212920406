import { chmodSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { NamedResult } from '../../../../src/old/commands/doctor/result.js'
import { main } from '../../../../src/old/main.js'
import { VERSION } from '../../../../src/store/schema.js'
import { Tokens } from '../../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../../helpers/context.js'
import { closeAfter, codeHost, findings, profile, SECRETS, TOKEN, used } from './rig.js'
import { serveFor } from '../../rig.js'

describe('a diagnosis', () => {
  it('of a profile that is served and signed in finds nothing wrong', async () => {
    const { context, folder, host, out, err } = await profile()
    const serving = closeAfter(await serveFor(context))
    const port = new URL(serving.url).port
    expect(await findings(context)).toEqual([
      { check: 'node', state: 'ok', text: 'Node 20.18.0' },
      { check: 'settings', state: 'ok', text: '8 set, the others have their defaults' },
      { check: 'this shell', state: 'ok', text: `agrees with process ${process.pid}` },
      { check: 'folder', state: 'ok', text: `only you can read ${folder}` },
      { check: 'database', state: 'ok', text: `can write and read; schema version ${VERSION}; not damaged` },
      { check: 'disk', state: 'ok', text: expect.stringMatching(/^[\d,]+ MiB free/) },
      { check: 'keychain', state: 'skip', text: 'not used (--store keychain uses it)' },
      { check: 'instance', state: 'ok', text: `process ${process.pid} at ${serving.url} has proved itself` },
      { check: 'port', state: 'ok', text: `the instance listens on ${port}` },
      { check: 'tunnel', state: 'skip', text: 'none; relay serve --tunnel opens one' },
      { check: 'code host', state: 'ok', text: `${host.url} is Gitea 1.21.0` },
      { check: 'clock', state: 'ok', text: "within 1 s of the code host's" },
      {
        check: 'webhook secret',
        state: 'ok',
        text: `set, the same as process ${process.pid} has; accepts deliveries of up to 1,048,576 bytes (--max-body)`,
      },
      {
        check: 'OAuth client',
        state: 'ok',
        text: `process ${process.pid} has client id client-id; ${host.url} knows it`,
      },
      { check: 'token', state: 'ok', text: 'ada is signed in as octo; the token expires in 10 h' },
      {
        check: 'hooks',
        state: 'skip',
        text: 'none was made, and the journal has no delivery of a repository',
      },
      {
        check: 'addresses',
        state: 'ok',
        text: `sign-in returns to ${serving.url}/auth/gitea/callback, then to ${serving.url}`,
      },
    ])
    expect(await main(['doctor'], context)).toBe(0)
    expect(err()).toBe('')
    expect(out().split('\n').slice(0, 2)).toEqual([
      `ok  node            Node ${process.versions.node}`,
      'ok  settings        8 set, the others have their defaults',
    ])
  })

  it('of an empty machine says what to do, and makes nothing', async () => {
    const host = await codeHost()
    const home = path.join(emptyFolder(), 'home')
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: host.url, RELAY_USER: 'ada' }
    const { context } = testContext({ env: { ...env, RELAY_PORT: String(await used()) } })
    expect((await findings(context)).map(({ check, state, fix }) => [check, state, fix])).toEqual([
      ['node', 'ok', undefined],
      ['settings', 'ok', undefined],
      ['this shell', 'skip', undefined],
      ['folder', 'skip', undefined],
      ['database', 'skip', undefined],
      ['disk', 'ok', undefined],
      ['keychain', 'skip', undefined],
      ['instance', 'skip', undefined],
      ['port', 'fail', expect.stringMatching(/^relay serve --port \d+$/)],
      ['tunnel', 'skip', undefined],
      ['code host', 'ok', undefined],
      ['clock', 'ok', undefined],
      ['webhook secret', 'skip', undefined],
      ['OAuth client', 'fail', 'relay setup'],
      ['token', 'fail', 'relay login --user ada'],
      ['hooks', 'skip', undefined],
      ['addresses', 'ok', undefined],
    ])
    expect(() => chmodSync(home, 0o700)).toThrow('ENOENT')
  })

  it('asks the code host about itself, the token and the client, and shows no secret', async () => {
    const { context, host, out, err } = await profile()
    expect(await main(['doctor', '--json'], context)).toBe(0)
    const asked = host.received.map(
      ({ method, path, headers }) => `${method} ${path} ${headers.authorization}`,
    )
    expect(new Set(asked)).toEqual(
      new Set([
        `GET /api/v1/user Bearer ${TOKEN}`,
        'GET /api/v1/version undefined',
        'POST /login/oauth/access_token undefined',
      ]),
    )
    expect(asked).toHaveLength(3)
    const secrets = Object.values(SECRETS)
    const sent = JSON.stringify(host.received.filter(({ path }) => path.startsWith('/api/')))
    const shown = out() + err()
    expect(secrets.filter((secret) => sent.includes(secret))).toEqual([])
    expect([TOKEN, ...secrets].filter((secret) => shown.includes(secret))).toEqual([])
  })

  it('that finds something wrong ends with 1, for a program too', async () => {
    const { context, out, err } = await profile({ RELAY_CLIENT_ID: '' })
    expect(await main(['doctor', '--json'], context)).toBe(1)
    expect(err()).toBe('{"v":1,"type":"error","code":"unhealthy","error":"1 of 17 checks failed"}\n')
    const { v, ok, checks } = JSON.parse(out())
    expect({
      v,
      ok,
      bad: checks.filter(({ state }: NamedResult) => state === 'fail').map((one: NamedResult) => one.check),
    }).toEqual({
      v: 1,
      ok: false,
      bad: ['OAuth client'],
    })
  })

  it('gives the fix below', async () => {
    const { context, out, err } = await profile({}, async (store) => {
      await new Tokens(store).revoke('ada')
    })
    expect(await main(['doctor', '-q'], context)).toBe(1)
    expect(out()).toContain(
      '\nx   token           ada is not signed in\n                    fix: relay login --user ada\n',
    )
    expect(err()).toBe('error: 1 of 17 checks failed\n')
  })
})
