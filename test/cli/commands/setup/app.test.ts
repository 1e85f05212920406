import path from 'node:path'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { listProfiles } from '../../../../src/instance/profile.js'
import { saveHook } from '../../../../src/hooks/saved.js'
import { appToken } from '../../../../src/providers/github/app-token.js'
import { readAppHook, readStoredApp, readStoredClient } from '../../../../src/setup/record.js'
import { servedProfile } from '../../../../src/cli/commands/serve/served-profile.js'
import { completeSettings } from '../../../../src/cli/settings/complete.js'
import { prepare } from '../../../../src/cli/settings/prepare.js'
import { readWebhookSecret } from '../../../../src/cli/settings/webhook-secret.js'
import { startSandbox } from '../../../../src/testing/index.js'
import { testContext } from '../../../helpers/context.js'
import { profileStore, type Shell, shell } from '../../rig.js'
import { agree, newcomer, open, register, setup } from './rig.js'

const ID = /^Iv23li[0-9a-f]{14}$/

async function clientId(shell: Shell): Promise<string | undefined> {
  await using store = await profileStore(shell)
  return (await readStoredClient(store))?.client.id
}

describe('relay setup', () => {
  it('registers an App in the browser, and stores its client and its key', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    let page = ''
    const { code, out } = await setup(here, ['--json'], async (address) => {
      page = await (await register(address)).text()
    })
    expect(code).toBe(0)
    const result = JSON.parse(out)
    expect(result).toEqual({
      v: 1,
      provider: 'sandbox',
      providerUrl: sandbox.url,
      clientId: expect.stringMatching(ID),
      app: { id: 301, slug: expect.stringMatching(/^relay-[0-9a-f]{8}$/), installUrl: expect.any(String) },
      checks: expect.any(Array),
    })
    expect(result.checks).toContainEqual({
      check: 'OAuth client',
      state: 'ok',
      text: `client id ${result.clientId} (setup); ${sandbox.url} knows it`,
    })
    expect(page).toContain(`href="${result.app.installUrl}"`)
    await using store = await profileStore(here)
    expect(await readStoredClient(store)).toMatchObject({ provider: 'sandbox', providerUrl: sandbox.url })
    expect(await readStoredApp(store, sandbox.url)).toMatchObject({ id: 301, slug: result.app.slug })
    expect(await readStoredApp(store, 'https://github.com')).toBeUndefined()
  })

  it('asks for the least permissions, and for a webhook that is inactive', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url, { RELAY_PORT: '9123' })
    let manifest: unknown
    await setup(here, [], async (address) => {
      manifest = JSON.parse((await open(address)).manifest)
      await register(address)
    })
    expect(manifest).toEqual({
      name: expect.stringMatching(/^relay-/),
      url: 'http://127.0.0.1:9123',
      description: expect.any(String),
      redirect_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/setup\/callback$/),
      callback_urls: ['http://127.0.0.1:9123/auth/sandbox/callback'],
      public: false,
      default_permissions: {
        issues: 'write',
        pull_requests: 'write',
        contents: 'write',
        repository_hooks: 'write',
        checks: 'read',
        statuses: 'read',
      },
      hook_attributes: { url: 'http://127.0.0.1:9123/webhook', active: false },
      default_events: expect.arrayContaining(['issue_comment', 'push', 'pull_request']),
    })
  })

  it('takes over the webhook secret of the App where the profile has none', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    expect((await setup(here, [], register)).code).toBe(0)
    expect((await here.run(['config', '--reveal', 'webhookSecret'])).out).toMatch(/^[0-9a-f]{40}\n$/)
    const file = path.join(here.home, 'default', 'webhook-secret')
    expect(readFileSync(file, 'utf8')).toMatch(/^[0-9a-f]{40}\n$/)
  })

  it('has the App sign with the secret that the profile has already', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    const folder = path.join(here.home, 'default')
    const own = readWebhookSecret(folder, 'file').reveal()
    expect((await setup(here, [], register)).code).toBe(0)
    expect((await here.run(['config', '--reveal', 'webhookSecret'])).out).toBe(`${own}\n`)
    expect(sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toContain(
      'PATCH /api/v3/app/hook/config',
    )
  })

  it('has the App sign with the secret of the environment, and shows it nowhere', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url, { RELAY_WEBHOOK_SECRET: 'a secret of the environment' })
    const { code, out, err } = await setup(here, [], register)
    expect(code).toBe(0)
    expect(out + err).not.toContain('a secret of the environment')
    expect(sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toContain(
      'PATCH /api/v3/app/hook/config',
    )
    expect(existsSync(path.join(here.home, 'default', 'webhook-secret'))).toBe(false)
  })

  it('gives serve its client and its code host', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    await setup(here, [], register)
    const { context } = testContext({ env: { RELAY_HOME: here.home } })
    const options = await servedProfile(prepare(context, {}), false)
    const { provider, providerUrl, oauthClient } = completeSettings(options)
    expect({ provider, providerUrl, id: oauthClient?.id }).toEqual({
      provider: 'sandbox',
      providerUrl: sandbox.url,
      id: await clientId(here),
    })
    const other = testContext({ env: { RELAY_HOME: here.home, RELAY_PROVIDER: 'github' } })
    const elsewhere = await servedProfile(prepare(other.context, {}), false)
    expect(completeSettings(elsewhere).oauthClient).toBeUndefined()
  })

  it('shows what it stored in config, with setup as the origin, below every other place', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    await setup(here, [], register)
    const bare = shell({}, here.home)
    const { settings } = JSON.parse((await bare.run(['config', '--json'])).out)
    expect(settings).toMatchObject({
      provider: { value: 'sandbox', origin: 'setup' },
      providerUrl: { value: sandbox.url, origin: 'setup' },
      clientId: { value: expect.stringMatching(ID), origin: 'setup' },
      clientSecret: { set: true, origin: 'setup' },
    })
    const other = shell({ RELAY_CLIENT_ID: 'mine', RELAY_CLIENT_SECRET: 'own' }, here.home)
    expect(JSON.parse((await other.run(['config', '--json'])).out).settings).toMatchObject({
      clientId: { value: 'mine', origin: 'RELAY_CLIENT_ID' },
      clientSecret: { set: true, origin: 'RELAY_CLIENT_SECRET' },
    })
    const elsewhere = shell({ RELAY_PROVIDER: 'github' }, here.home)
    expect(JSON.parse((await elsewhere.run(['config', '--json'])).out).settings).toMatchObject({
      clientId: { value: null },
      clientSecret: { set: false },
    })
  })

  it('ignores an answer of another browser, without the state, and after the first', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    const statuses: number[] = []
    const { code } = await setup(here, [], async (address) => {
      const visit = await open(address)
      const answer = await agree(visit, 'first')
      const { origin, searchParams } = new URL(answer)
      const given = async (query: string, cookie?: string): Promise<void> => {
        const headers: Record<string, string> = cookie === undefined ? {} : { cookie }
        statuses.push((await fetch(`${origin}/setup/callback?${query}`, { headers })).status)
      }
      await given(searchParams.toString())
      await given(searchParams.toString(), 'relay_setup=other')
      await given(`code=${searchParams.get('code')}`, visit.cookie)
      await given(`code=${searchParams.get('code')}&state=other`, visit.cookie)
      await given(`${searchParams.toString()}&code=another`, visit.cookie)
      expect(listProfiles(here.home)).toEqual([])
      const both = [
        given(searchParams.toString(), visit.cookie),
        given(searchParams.toString(), visit.cookie),
      ]
      await Promise.all(both)
    })
    expect(code).toBe(0)
    expect(statuses.slice(0, 5)).toEqual([400, 400, 400, 400, 400])
    expect(statuses.slice(5).toSorted((one, other) => one - other)).toEqual([200, 400])
  })

  it('works when it is left half way and begun again', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    const { code } = await setup(here, [], async (address) => {
      await agree(await open(address), 'left')
      expect((await register(address)).status).toBe(200)
    })
    expect(code).toBe(0)
    expect(await clientId(here)).toMatch(ID)
  })

  it('stores nothing and leaves no profile when it is interrupted', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    const stop = new AbortController()
    let own = ''
    const { code, out } = await setup(
      here,
      [],
      async (address) => {
        own = address
        await agree(await open(address))
        stop.abort(new RelayError('cancelled', 'Interrupted'))
      },
      { signal: stop.signal },
    )
    expect({ code, out, profiles: listProfiles(here.home) }).toEqual({ code: 130, out: '', profiles: [] })
    await expect(fetch(own)).rejects.toThrow('fetch failed')
    // Begun again, it registers another App.
    expect((await setup(here, [], register)).code).toBe(0)
    expect(await clientId(here)).toMatch(ID)
  })

  it('stores nothing when the code host fails, and says so in both places', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    let page = ''
    const { code, err } = await setup(here, [], async (address) => {
      const visit = await open(address)
      const answer = new URL(await agree(visit))
      answer.searchParams.set('code', 'f'.repeat(40))
      page = await (await fetch(answer, { headers: { cookie: visit.cookie } })).text()
    })
    expect({ code, profiles: listProfiles(here.home) }).toEqual({ code: 8, profiles: [] })
    expect(err).toContain('The sandbox refused: Not Found')
    expect(page).toContain('The sandbox refused: Not Found')
  })

  it('replaces a client only with a yes', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    await setup(here, [], register)
    const first = await clientId(here)
    const { code, err } = await setup(here, [], register)
    expect(code).toBe(2)
    expect(err).toBe(
      `error: This profile has the client ${first} of ${sandbox.url}. To replace it without being asked, give --yes\n`,
    )
    expect(await clientId(here)).toBe(first)
    expect((await setup(here, ['--yes'], register)).code).toBe(0)
    expect(await clientId(here)).not.toBe(first)
  })

  it.each([
    ['RELAY_CLIENT_SECRET', { RELAY_CLIENT_ID: 'mine', RELAY_CLIENT_SECRET: 'own' }],
    ['RELAY_CLIENT_ID', { RELAY_CLIENT_ID: 'mine' }],
  ])('is an error while %s is set, which would win', async (name, env) => {
    await using sandbox = await startSandbox()
    const { code, err } = await setup(newcomer(sandbox.url, env), [], register)
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: ${name} is set, and wins over what relay setup stores. Remove it, then run relay setup again\n`,
    })
  })

  it('needs an address that the code host can reach for --app-hook', async () => {
    const { code, err } = await setup(shell({}), ['--app-hook'], register)
    expect({ code, err }).toEqual({
      code: 2,
      err: 'error: The code host cannot reach http://127.0.0.1:8787. Start relay serve --tunnel first, or give --public-url\n',
    })
  })

  it('stores where the webhook of --app-hook leads, and asks for one that is active', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    const url = 'http://127.0.0.1:8787/webhook'
    let manifest: unknown
    const { code } = await setup(here, ['--app-hook'], async (address) => {
      manifest = JSON.parse((await open(address)).manifest)
      await register(address)
    })
    expect(code).toBe(0)
    expect(manifest).toMatchObject({ hook_attributes: { url, active: true } })
    await using store = await profileStore(here)
    expect(await readAppHook(store, sandbox.url)).toEqual({ url, former: url })
    expect((await setup(here, ['--yes'], register)).code).toBe(0)
    expect(await readAppHook(store, sandbox.url)).toBeUndefined()
  })

  it('refuses --app-hook while hooks of the profile would send the same, before anything is registered', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    await using store = await profileStore(here)
    const hook = { id: 1, url: 'http://127.0.0.1:9/', chosen: false, events: null, permanent: true }
    for (const repo of ['demo', 'other'])
      await saveHook(store, { origin: sandbox.url }, { owner: 'octo', repo }, hook)
    const { code, err } = await setup(here, ['--app-hook'], register)
    expect({ code, err }).toEqual({
      code: 2,
      err: "error: This profile has hooks already (octo/demo, octo/other), so the App's webhook would send each delivery a second time. Remove them with relay hook remove octo/demo\n",
    })
    expect((await setup(here, [], register)).code).toBe(0)
  })

  it('registers the App of an organization with --org', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    let action = ''
    const { code } = await setup(here, ['--org', 'acme'], async (address) => {
      ;({ action } = await open(address))
      await register(address)
    })
    expect(code).toBe(0)
    expect(new URL(action).pathname).toBe('/organizations/acme/settings/apps/new')
    await using store = await profileStore(here)
    const app = await readStoredApp(store, sandbox.url)
    if (!app) throw new Error('nothing was stored')
    const headers = { authorization: `Bearer ${appToken(app, Date.now())}` }
    expect(await (await fetch(`${sandbox.url}/api/v3/app`, { headers })).json()).toMatchObject({
      slug: app.slug,
      owner: { login: 'acme', type: 'Organization' },
    })
  })

  it('removes what it stored with the profile', async () => {
    await using sandbox = await startSandbox()
    const here = newcomer(sandbox.url)
    await setup(here, [], register)
    const id = await clientId(here)
    const { code, err } = await here.run(['reset', '--yes'])
    expect(code).toBe(0)
    expect(err).toContain(`  client      ${id}, which stays registered at ${sandbox.url}\n`)
    expect(listProfiles(here.home)).toEqual([])
  })
})
