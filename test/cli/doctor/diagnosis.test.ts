import { chmodSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import type { Finding } from '../../../src/cli/doctor/finding.js'
import { main } from '../../../src/cli/main.js'
import { completeSettings } from '../../../src/cli/settings.js'
import { readOptions } from '../../../src/cli/settings/read.js'
import { serve } from '../../../src/serve/serve.js'
import { createTokens } from '../../../src/tokens/tokens.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { closeAfter, codeHost, findings, profile, SECRETS, TOKEN, used } from './rig.js'

describe('a diagnosis', () => {
  it('of a profile that is served and signed in finds nothing wrong', async () => {
    const { context, folder, host, out, err } = await profile()
    const { options } = readOptions(context, {}, silentLog)
    const serving = closeAfter(await serve(completeSettings(options)))
    const port = new URL(serving.url).port
    expect(await findings(context)).toEqual([
      { check: 'node', state: 'ok', text: 'Node 20.18.0' },
      { check: 'settings', state: 'ok', text: '8 set, the others at their defaults' },
      { check: 'folder', state: 'ok', text: `${folder} is for you alone` },
      { check: 'store', state: 'ok', text: 'opens, writes and reads' },
      { check: 'keychain', state: 'none', text: 'not used: --store keychain would' },
      { check: 'instance', state: 'ok', text: `process ${process.pid} at ${serving.url} has proved itself` },
      { check: 'port', state: 'ok', text: `${port} is the instance's` },
      { check: 'tunnel', state: 'none', text: 'none: relay serve --tunnel makes one' },
      { check: 'code host', state: 'ok', text: `${host.url} answers` },
      { check: 'clock', state: 'ok', text: "within 1 s of the code host's" },
      { check: 'webhook secret', state: 'ok', text: 'set' },
      { check: 'OAuth client', state: 'ok', text: 'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET are set' },
      { check: 'token', state: 'ok', text: "ada's, for 10 h" },
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
      'ok  settings        8 set, the others at their defaults',
    ])
  })

  it('of an empty machine says what to do, and makes nothing', async () => {
    const host = await codeHost()
    const home = path.join(emptyFolder(), 'home')
    const env = { RELAY_HOME: home, RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: host.url, RELAY_USER: 'ada' }
    const { context } = testContext({ env: { ...env, RELAY_PORT: String(await used()) } })
    const port = Number(context.env['RELAY_PORT'])
    expect((await findings(context)).map(({ check, state, mend }) => [check, state, mend])).toEqual([
      ['node', 'ok', undefined],
      ['settings', 'ok', undefined],
      ['folder', 'none', undefined],
      ['store', 'none', undefined],
      ['keychain', 'none', undefined],
      ['instance', 'none', undefined],
      ['port', 'wrong', `relay serve --port ${port + 1}`],
      ['tunnel', 'none', undefined],
      ['code host', 'ok', undefined],
      ['clock', 'ok', undefined],
      ['webhook secret', 'none', undefined],
      [
        'OAuth client',
        'wrong',
        `register an OAuth application at the code host that returns to http://127.0.0.1:${port}/auth/gitea/callback, and set them`,
      ],
      ['token', 'wrong', 'relay login --user ada'],
      ['addresses', 'ok', undefined],
    ])
    expect(() => chmodSync(home, 0o700)).toThrow('ENOENT')
  })

  it('sends the code host nothing but a question, and shows no secret', async () => {
    const { context, host, out, err } = await profile()
    expect(await main(['doctor', '--json'], context)).toBe(0)
    expect(host.received.map(({ method, path }) => ({ method, path }))).toEqual([
      { method: 'HEAD', path: '/' },
    ])
    const everything = JSON.stringify([host.received, out(), err()])
    expect([TOKEN, ...Object.values(SECRETS)].filter((secret) => everything.includes(secret))).toEqual([])
  })

  it('that finds something wrong ends with 1, for a program too', async () => {
    const { context, out, err } = await profile({ RELAY_CLIENT_ID: '' })
    expect(await main(['doctor', '--json'], context)).toBe(1)
    expect(err()).toBe('{"v":1,"type":"error","code":"unhealthy","error":"1 of 14 checks failed"}\n')
    const { v, ok, checks } = JSON.parse(out())
    expect({
      v,
      ok,
      bad: checks.filter(({ state }: Finding) => state === 'wrong').map((one: Finding) => one.check),
    }).toEqual({
      v: 1,
      ok: false,
      bad: ['OAuth client'],
    })
  })

  it('says what mends it below', async () => {
    const { context, out, err } = await profile({}, async (store) => {
      await createTokens(store).revoke('ada')
    })
    expect(await main(['doctor', '-q'], context)).toBe(1)
    expect(out()).toContain(
      '\nx   token           ada is not signed in\n                    mend: relay login --user ada\n',
    )
    expect(err()).toBe('error: 1 of 14 checks failed\n')
  })
})
